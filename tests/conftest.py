"""A test with the fixture `backend` runs once per backend, and its id contains the name of that
backend and no other. A test that needs no backend takes no such fixture and runs once. Tests that
need a missing framework are skipped and counted.

`pytest --backend NAME` runs the tests that take the fixture on that backend alone, and no others.
It may be one of another package, which registers it under `isomorph.backends`; what it says it
lacks leaves a test out, with the reason. `--backend none` runs the others. `pytest --device NAME`
runs them on the backends that have this device, with their arrays there (`devices.py`).

`pytest --quick` runs what `make test` does: the sample of a seed (`sampling.py`). `pytest --part
2/6` runs the second of six parts.
"""

import gc
import os
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("ONEDNN_JIT_PROFILE", "0")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Inductor compiles ten programs to see which instructions work; the processor says it too.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")

import devices
import memory
import pytest
import reach
import sampling
import verbs
from frameworks import (  # noqa: F401
    ABSENT,
    BACKENDS,
    MISSING,
    NOT_INSTALLED,
    Missing,
    enable_x64,
    jax,
    older,
    torch,
)

import isomorph as iso
from isomorph.core.dispatch import load, names
from oracles import QUICK_XLA, noted

# A second run of the tests need not compile what did not change.
iso.cache(Path(__file__).parents[1] / ".programs")

# JAX compiles every eager operation by itself, 35 ms each on a slow core: more than half of the
# time of all tests. XLA's simpler code generators halve that. Optimizations before code generation
# stay on. Programs that are compared with eager ones are compiled with a user's settings
# (`oracles.as_users_have_it`), and so is everything in `make test-all`. JAX reads the flags when it
# first computes; they are removed then, so that TensorFlow does not read them. A version that does
# not know a flag ends the process, so only known versions get any.
# On a GPU these flags give NaN (JAX 0.11, `linalg.toeplitz`): processes with `--device` get none.
if any(word.startswith("--device") for word in sys.argv):
    os.environ["ISOMORPH_XLA"] = "full"
if (
    os.environ.get("ISOMORPH_XLA") != "full"
    and "XLA_FLAGS" not in os.environ
    and "jax" not in NOT_INSTALLED
    and not older("jax", 0, 9)
    and older("jax", 0, 13)
):
    os.environ["XLA_FLAGS"] = QUICK_XLA
    jax.block_until_ready(jax.numpy.zeros(1) + 1)
    del os.environ["XLA_FLAGS"]
    os.environ["ISOMORPH_XLA"] = "quick"  # for child processes that must give the same bits


# What `--core` runs, in a few minutes: a selection of the namespace, gradients, layers, loops,
# modules and training, eager and compiled. `noxfile.py` runs it with other versions.
CORE = (
    "backends/test_namespace.py",
    "backends/test_private_names.py",
    "backends/test_tensorflow_layers.py::test_a_step_of_a_network_with_convolutions",
    "test_examples.py",
    "compile/test_compile.py",
    "compile/test_compiled_keys.py",
    "promises/test_contracts.py",
    "promises/test_dispatch.py",
    "gradients/test_eager_differences.py",
    "flow/test_flow.py",
    "gradients/test_gradient_edges.py",
    "gradients/test_checkpointing.py",
    "gradients/test_host.py",
    "promises/test_jax_32_bits.py",
    "arrays/test_conversion.py",
    "promises/test_numbers.py",
    "random/test_random.py",
    "arrays/test_traced_indices.py",
    "gradients/test_vmap.py",
    "export/",
    "frontends/",
    "gradients/test_gradients.py",
    "layers/test_attention_masks.py",
    "layers/test_layers.py",
    "layers/test_pooling.py",
    "programs/",
    "modules/test_modules.py",
    "training/test_checkpoints.py",
    "training/test_compiled_once.py",
    "training/test_fit.py",
    "training/test_state_resume.py",
    "training/test_stepping.py",
)


def pytest_addoption(parser):
    parser.addoption("--core", action="store_true", help="the suite for versions of frameworks")
    parser.addoption("--verbs", action="store_true", help="fail if a verb of a backend is not used")
    parser.addoption("--backend", metavar="NAME", help="what takes a backend, on this one alone")
    parser.addoption("--device", metavar="NAME", help="what takes a backend, on this device alone")
    parser.addoption("--quick", action="store_true", help="the sample that ISOMORPH_SEED draws")
    parser.addoption("--part", metavar="2/6", help="a part of the tests, of equal recorded time")
    since = "what a change since this commit can reach; by default, since the last one"
    parser.addoption("--changed", nargs="?", const="", type=reach.base, metavar="REV", help=since)


@pytest.hookimpl(tryfirst=True)  # before the scoreboard reads its options
def pytest_configure(config):
    asked = config.getoption("--backend")
    if asked and asked not in (*names(), "none"):
        known = ", ".join(sorted(names()))
        raise pytest.UsageError(f"--backend: needed one of {known}, or none, got {asked!r}")
    try:
        group = asked if asked in sampling.GROUPS and not config.getoption("--device") else None
        share = sampling.share_of(group, config.getoption("--part"))
        config.option.scoreboard_part = share or config.getoption("scoreboard_part", "")
        sampling.seed_of(os.environ.get("ISOMORPH_SEED", "0"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error
    if config.getoption("--verbs"):
        for name in ran_on():
            verbs.watch(name)
    device = config.getoption("--device")
    if device and not any(devices.device_of(name, device) for name in BACKENDS):
        found = {name: load(name).devices() for name in devices.BACKENDS if name in ran_on()}
        raise pytest.UsageError(f"--device: needed a device of {found}, got {device!r}")
    if device and getattr(config.option, "scoreboard", None) is not None:
        config.option.scoreboard_device = device
        config.option.scoreboard_about = config.option.scoreboard_about or devices.about(device)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["verbs"] = sorted(verbs.USED)
    elif session.config.getoption("--verbs") and any(map(any, map(verbs.left_out, ran_on()))):
        session.exitstatus = max(session.exitstatus, 1)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    verbs.USED.update(map(tuple, getattr(node, "workeroutput", {}).get("verbs", ())))


def ran_on():
    return [name for name in BACKENDS if name not in NOT_INSTALLED]


@cache
def watch(name):
    """Let compiled programs report when they run: only then does the scoreboard count mode jit.
    NumPy compiles nothing.
    """
    if name == "jax":
        load(name).jit = noted(load(name).jit)
    elif name != "numpy":
        load(name).compile = noted(load(name).compile)


KEEPER = memory.Keeper()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    KEEPER.look()


@pytest.fixture(params=BACKENDS)
def backend(request):
    """The name of a backend. JAX runs with 64-bit types, so that float64 oracles are exact; they
    are enabled in a context, not globally.
    """
    watch(request.param)
    if request.param == "jax":
        with enable_x64(True):
            yield request.param
    else:
        yield request.param


@pytest.fixture
def xp(backend):
    """The namespace of the backend."""
    with iso.use_backend(backend):
        return iso.namespace()


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc):
    """Use the backend of `--backend` instead of the four, unless a test names its own backends."""
    asked = metafunc.config.getoption("--backend")
    if asked not in (None, "none") and "backend" in metafunc.fixturenames:
        own = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
        if not any("backend" in re.findall(r"\w+", str(given)) for given in own):
            alone = pytest.mark.parametrize("backend", [asked], indirect=True)
            metafunc.definition.add_marker(alone)


def backends_of(config):
    """The backends that tests run on: the four, or that of `--backend`."""
    asked = config.getoption("--backend")
    return BACKENDS if asked in (None, "none") else (asked,)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """With `--device`, the arrays of a test are made there."""
    device = item.config.getoption("--device")
    if not device:
        return (yield)
    name = backend_in(item.nodeid, BACKENDS)[0]
    with devices.made_on(name, device):
        result = yield
    devices.end_if_broken(name, device)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    """With `--device`, a test that made no array there fails, unless it says why (`host_only`)."""
    device = item.config.getoption("--device")
    if not device:
        return (yield)
    name = backend_in(item.nodeid, BACKENDS)[0]
    before = devices.allocations(name, device)
    result = yield
    uncounted = item.nodeid.startswith(tuple(f"tests/{part}" for part in devices.UNCOUNTED))
    after = devices.allocations(name, device)
    if before is not None and not uncounted and after == before:
        pytest.fail(f"no array was made on {device}: the test proves nothing there ({after})")
    return result


def backend_in(nodeid, backends):
    """The backends named in the parameters of a test id, as whole words."""
    words = re.split(r"[\[\]-]", nodeid.partition("[")[2])
    return [name for name in backends if name in words]


def keep(config, items, is_kept):
    """Deselect all other tests."""
    config.hook.pytest_deselected(items=[item for item in items if not is_kept(item)])
    items[:] = filter(is_kept, items)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("--core"):
        chosen = tuple(f"tests/{part}" for part in CORE)
        keep(config, items, lambda item: item.nodeid.startswith(chosen))
    asked = config.getoption("--backend")
    if asked:
        wanted = None if asked == "none" else asked
        keep(config, items, lambda item: backend_param(item) == wanted)
    if config.getoption("--device"):
        keep_on_device(config, items)
    if config.getoption("--changed"):
        reach.select(
            config, items, lambda item: next(iter(backend_in(item.nodeid, BACKENDS)), None)
        )
    for item in items:
        named = backend_in(item.nodeid, backends_of(config))
        if "[NOTSET]" in item.nodeid:
            continue  # it has no parameters to run with
        if len(named) > 1 or (not named and "backend" in getattr(item, "fixturenames", ())):
            raise pytest.UsageError(f"{item.nodeid}: needed one backend in the id, got {named}")
        if named and named[0] in NOT_INSTALLED:
            item.add_marker(pytest.mark.skip(reason=MISSING.format(named[0])))
    if config.getoption("--quick"):
        keep_sample(config, items)
    if config.getoption("--part"):
        keep_part(config, items)
    if hasattr(config, "workerinput"):
        items[:] = halves(items)


def halves(items):
    """The tests in an order whose halves are for two workers: each loads what some frameworks keep,
    and long tests come early. What is quick comes last, where one worker takes from the other.
    """
    groups = {name: [] for name in sampling.GROUPS}
    for item in items:
        groups[(backend_in(item.nodeid, BACKENDS) or ["none"])[0]].append(item)
    first, quick = groups["torch"] + groups["none"], groups["numpy"]
    room = max(len(items) // 2 - len(first), 0)
    return first + quick[:room] + groups["jax"] + groups["tensorflow"] + quick[room:]


def backend_param(item):
    return item.callspec.params.get("backend") if hasattr(item, "callspec") else None


def keep_on_device(config, items):
    """Keep the tests of backends that have the device, and skip those that say why."""
    device, backends = config.getoption("--device"), backends_of(config)
    has = lambda name: devices.device_of(name, device) is not None
    keep(config, items, lambda item: any(map(has, backend_in(item.nodeid, backends))))
    for item in items:
        for words in devices.WARNINGS:
            item.add_marker(pytest.mark.filterwarnings(words))
        for part, why in devices.HOST_ONLY.items():
            if item.nodeid.startswith(f"tests/{part}"):
                item.add_marker(pytest.mark.host_only(why))
        for mark in item.iter_markers("host_only"):
            why, *only = mark.args
            if not only or backend_in(item.nodeid, only):
                item.add_marker(pytest.mark.skip(reason=f"on the host only: {why}"))


def keep_sample(config, items):
    """Keep what the seed draws of the tests that are not slow."""
    keep(config, items, lambda item: item.get_closest_marker("slow") is None)
    seed = sampling.seed_of(os.environ.get("ISOMORPH_SEED", "0"))
    whole = {item.nodeid for item in items if item.get_closest_marker("whole")}
    chosen = sampling.drawn([item.nodeid for item in items], seed, whole)
    left_out = [item for item in items if item.nodeid not in chosen]
    keep(config, items, lambda item: item.nodeid in chosen)
    if hasattr(config.hook, "pytest_scoreboard_left_out"):
        config.hook.pytest_scoreboard_left_out(items=left_out, seed=seed)


def keep_part(config, items):
    """Keep one part of the tests that would run otherwise."""
    keep_marked = config.getoption("markexpr") == "not slow"
    ids = [i.nodeid for i in items if not (keep_marked and i.get_closest_marker("slow"))]
    chosen = sampling.part_of(ids, *sampling.part_and_parts(config.getoption("--part")))
    keep(config, items, lambda item: item.nodeid in chosen)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collecting makes millions of objects that stay: nothing is looked for among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_finish():
    Missing.running = True


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Skip a test that asks for a framework that is not installed, or for what the backend of
    `--backend` says it lacks.
    """
    try:
        return (yield)
    except Exception as error:
        lacking = lacks(pyfuncitem.config.getoption("--backend"), error)
        if lacking:
            pytest.skip(lacking)
        said = [name for name in ABSENT if asks_for(name, error)]
        if not said:
            raise
        pytest.skip(MISSING.format(said[0]))


def lacks(name, error):
    """What the backend lacks according to an error: a verb, with the backend's reason, or a narrow
    dtype. None for other errors.
    """
    if name and isinstance(error, NotImplementedError):
        said = [f"{name} has no {verb}: {why}" for verb, why in load(name).lacks.items()]
        return next((words for words in said if str(error) == f"backend {words}"), None)
    if (
        name
        and isinstance(error, TypeError)
        and str(error).startswith(f"dtype: needed a dtype of {name} ")
    ):
        narrow = [n for n in ("float16", "bfloat16") if str(error).endswith(f", got {n!r}")]
        return f"{name} has no {narrow[0]}" if narrow else None
    return None


def asks_for(name, error):
    """Whether an error says that a package is not installed. A failed import inside isomorph is our
    bug, unless a backend or an export to it was asked for.
    """
    if not isinstance(error, ImportError):
        return re.search(rf"\b{name}\S*, which is not installed", str(error))
    if str(error).startswith(f"backend '{name}' is not installed"):
        return True
    where = error.__traceback__
    while where.tb_next is not None:
        where = where.tb_next
    file = os.path.relpath(where.tb_frame.f_code.co_filename, os.path.dirname(iso.__file__))
    ours = not file.startswith(("..", "export"))
    return not ours and re.search(rf"\b{name}\b", str(error))


def pytest_terminal_summary(terminalreporter, config):
    backends = backends_of(config)
    if config.getoption("--verbs"):
        for name in ran_on():
            for how, left in zip(("eagerly", "in a program"), verbs.left_out(name)):
                line = f"verbs of {name} not used {how}: {', '.join(left) or 'none'}"
                terminalreporter.write_line(line)
    ran = Counter(
        (backend_in(report.nodeid, backends) or ["no backend"])[0]
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call"
    )
    counts = ", ".join(f"{name} {ran[name]}" for name in (*backends, "no backend"))
    terminalreporter.write_line(f"tests run on each backend: {counts}")
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    missing = re.compile(MISSING.format(r"(\w+)"))
    left = Counter(found[1] for reason in reasons if (found := missing.search(reason)))
    if left:
        counts = ", ".join(f"{name} {count}" for name, count in sorted(left.items()))
        terminalreporter.write_line(f"skipped, because not installed: {counts}")
