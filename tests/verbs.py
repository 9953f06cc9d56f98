"""Which verbs of which backends a run of the tests has used: `pytest --core --verbs`.

A verb is a method of a backend that is not in the array API standard. Each is wrapped on the
backend's only instance, and records whether it was called while a program was traced. The run fails
if a verb was not used and is not in one of the lists below.
"""

import threading
from functools import wraps

from frameworks import NOT_INSTALLED, torch

from isomorph.backends.composed import Backend
from isomorph.backends.vocabulary import VOCABULARY
from isomorph.core.dispatch import load

VERBS = tuple(
    name
    for name in dir(Backend)
    if callable(getattr(Backend, name)) and not name.startswith("_") and name not in VOCABULARY
)
NOT_IN_A_PROGRAM = {  # verbs that are not needed while a program is traced, and why
    **dict.fromkeys(
        ("borrow", "from_host", "lend", "pack", "unpack"), "a traced array has no memory"
    ),
    **dict.fromkeys(("to_numpy", "values"), "a traced array has no values"),
    "runs_ahead": "asks about run time",
    **dict.fromkeys(("price", "row_reader"), "asked before a program runs"),
    **dict.fromkeys(
        ("check_given", "compile", "signature", "placed"), "called before a program runs"
    ),
    **dict.fromkeys(("device", "devices", "named_device"), "device names are known before tracing"),
    "explain": "explains errors after they left the trace",
    "quick": "the framework's own generator draws outside of programs",
    **dict.fromkeys(("expect_repeats", "slot", "write_adam"), "for eager steps"),
}
ONLY_IN_A_PROGRAM = {"compiled_part": "a part of a program"}
OF_TWO = dict.fromkeys(("borrow", "from_host", "lend"), "between two frameworks that are not NumPy")
OF_FILES = {"sums": "sums bytes of files, which NumPy reads"}
NOT_ASKED = {  # backend -> the verbs that are never called on it, and why
    "numpy": {
        **dict.fromkeys(("check_given", "compile", "signature"), "it compiles nothing"),
        **dict.fromkeys(("distance", "put_window", "window"), "its indices are always known"),
    },
    "jax": {
        **dict.fromkeys(("check_given", "compile", "signature"), "jax.jit takes nests itself"),
        **dict.fromkeys(("counter", "replay", "run_unseen"), "JAX has loops and checkpoints"),
        "compiled_part": "XLA compiles whole programs",
        "has_quick_steps": "it compiles recurrent layers as a whole",
        "write_adam": "its arrays are immutable",
        **OF_FILES,
    },
    "tensorflow": OF_FILES,
    "torch": {
        **dict.fromkeys(("is_inside", "label_scores", "picked"), "has its own cross entropy"),
        "compiled_part": "Inductor compiles whole programs",
        **OF_FILES,
    },
}
NOT_ASKED_IN_A_PROGRAM = {
    "torch": {
        "counter": "the compiler counts",
        "probit": "uses its own random kernel",
    }
}
USED = set()  # (backend, verb, whether a program was being traced)
_here = threading.local()


def traced(func):
    """`func`, marked as being traced while it runs."""

    @wraps(func)
    def run(*args, **kw):
        _here.depth = getattr(_here, "depth", 0) + 1
        try:
            return func(*args, **kw)
        finally:
            _here.depth -= 1

    return run


def noting(xp, verb):
    """A verb of a backend that records its use."""
    meaning = getattr(xp, verb)
    eager, in_a_program = (xp.name, verb, False), (xp.name, verb, True)

    @wraps(meaning)
    def run(*args, **kw):
        if verb == compiler(xp.name):
            args = (traced(args[0]), *args[1:])
        out = meaning(*args, **kw)
        if not is_read():
            USED.add(in_a_program if getattr(_here, "depth", 0) else eager)
        return out

    return run


def is_read():
    """Whether torch.compile is tracing: it must not see a set change."""
    return "torch" not in NOT_INSTALLED and torch.compiler.is_compiling()


def compiler(name):
    """The verb that takes the function to compile; NumPy has none."""
    return {"numpy": None, "jax": "jit"}.get(name, "compile")


def watch(name):
    xp = load(name)
    for verb in VERBS:
        setattr(xp, verb, noting(xp, verb))


def left_out(name):
    """The verbs of a backend that no test used: eagerly, and while tracing."""
    unused = lambda traced, *lists: [
        verb
        for verb in VERBS
        if (name, verb, traced) not in USED and not any(verb in reasons for reasons in lists)
    ]
    lacking = NOT_ASKED[name] | (OF_TWO if len(NOT_INSTALLED) > 1 else {})
    eager = unused(False, lacking, ONLY_IN_A_PROGRAM)
    if compiler(name) is None:
        return eager, []
    return eager, unused(True, lacking, NOT_IN_A_PROGRAM, NOT_ASKED_IN_A_PROGRAM.get(name, {}))
