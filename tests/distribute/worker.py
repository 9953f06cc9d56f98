"""A process that a test starts: `worker.py JOB+JOB BACKEND FOLDER [OPTIONS]`. It computes together
with the others and alone, and writes what it found as JSON, a file for each job and rank.
"""

import hashlib
import json
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import problem

import isomorph as iso
from isomorph.core import tree
from isomorph.distribute import watchdog
from isomorph.distribute.world import bounds
from isomorph.training.stepping import TrainState, copied

JOBS, BACKEND, FOLDER, *REST = sys.argv[1:]
OPTIONS = dict(word.split("=") for word in REST)
COMPILED = OPTIONS.get("compiled", "yes") == "yes"
ALONE = {"compiled": BACKEND == "jax"}  # the reference; JAX op by op is slow
STEPS = 6


def apart(found, wanted):
    """The largest difference of losses; of all leaves; of those with a gradient."""
    losses = max(abs(a - b) for a, b in zip(found[0], wanted[0]))
    leaves = {k: float(np.max(np.abs(x - wanted[1][k]))) for k, x in found[1].items()}
    # a key's bias has no gradient in attention: Adam divides rounding errors by themselves
    rest = max(v for k, v in leaves.items() if k != "attention/in_b")
    return [losses, max(leaves.values()), rest]


def digest(nest):
    words = hashlib.sha256()
    for x in tree.flatten(iso.to_numpy(nest))[0]:
        words.update(np.ascontiguousarray(x).tobytes())
    return words.hexdigest()


def equal(world):
    """Steps of all workers against those of one."""
    found = {}
    for loss, optimizer, rows in [("plain", "sgd", 16), ("counted", "adamw", 13)]:
        options = {"compiled": COMPILED}
        ours = problem.stepped(BACKEND, world, loss, optimizer, rows, STEPS, **options)
        alone = problem.stepped(BACKEND, None, loss, optimizer, rows, STEPS, **ALONE)
        found[f"{loss} {optimizer} {rows}"] = apart(ours, alone)
        found[f"bits {loss}"] = digest(ours[1])
    return found


def peer(world):
    """Our steps against torch's own DistributedDataParallel, on the exported module."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    module = iso.export.to_torch(problem.made(BACKEND))
    theirs = DistributedDataParallel(module)
    sgd = torch.optim.SGD(theirs.parameters(), 0.1)
    for number in range(STEPS):
        tokens, labels = world.share(iso.convert(problem.data(16, number), BACKEND))
        sgd.zero_grad()
        y = theirs(tokens).flatten(0, 1)
        torch.nn.functional.cross_entropy(y, labels.clamp(min=0).flatten().long()).backward()
        sgd.step()
    found = {k.replace(".", "/"): x.detach().numpy() for k, x in module.named_parameters()}
    ours = problem.stepped(BACKEND, world, "plain", "sgd", 16, STEPS, compiled=False)[1]
    apart = {k: float(np.max(np.abs(x - found[k]))) for k, x in ours.items()}
    return {"leaves": len(apart), "theirs": len(found), "apart": max(apart.values())}


def controls(world):
    """What a wrong reduction would give: how far it is from one process."""
    found = {}
    wanted = problem.stepped(BACKEND, None, "plain", "sgd", 16, 10, compiled=False)
    keep = world.sum  # some engines compare models by it
    world.sum = lambda x: x if "float" in str(x.dtype) else keep(x)
    found["no reduction"] = apart(again(world, problem.plain_loss, 16), wanted)[1]
    del world.sum
    wanted = problem.stepped(BACKEND, None, "plain", "sgd", 5, 10, compiled=False)
    found["unweighted"] = apart(again(world, problem.plain_loss, 5, rows=1), wanted)[1]
    wanted = problem.stepped(BACKEND, None, "counted", "sgd", 16, 10, compiled=False)
    found["by rows"] = apart(again(world, ignoring_loss, 16), wanted)[1]
    return found


def ignoring_loss(model, tokens, labels):
    """A scalar, which does not say how many labels it is the mean of."""
    return iso.cross_entropy(model(tokens), labels, ignore_index=problem.IGNORED)


def again(world, loss, size, rows=None):
    step = iso.train_step(loss, problem.OPTIMIZERS["sgd"](), distribute=world, compiled=False)
    state = step.init(problem.made(BACKEND))
    losses = []
    for number in range(10):
        batch = world.share(iso.convert(problem.data(size, number), BACKEND))
        state, value, _, _ = step.run(state, batch, rows)
        losses.append(float(iso.to_numpy(value)))
    return losses, problem.flat(state.model)


def together(world):
    """`fit`, `evaluate`, `predict` and the verbs, against one process."""
    found = {}
    data = iso.convert(problem.data(21), BACKEND)
    other = iso.convert(problem.data(10, 7), BACKEND)
    metrics = {"accuracy": lambda m, x, y: iso.namespace(x).mean(m(x)[..., 0])}
    options = {
        "epochs": 2, "batch_size": 8, "validation": other, "metrics": metrics, "progress": False,
        "patience": 5, "compiled": COMPILED,
    }  # fmt: skip
    model, adam = problem.made(BACKEND), iso.optimizers.adamw(1e-2)
    ours = iso.fit(
        model, data, problem.counted_loss, adam, **options, distribute=world,
        checkpoint=Path(FOLDER) / "checkpoint", log=Path(FOLDER) / "log",
    )  # fmt: skip
    alone = iso.fit(model, data, problem.counted_loss, adam, **{**options, **ALONE})
    found["fit"] = apart(*[(x.losses, problem.flat(x.model)) for x in (ours, alone)])
    found["steps"] = [ours.steps, ours.stopped, len(ours.history)]
    both = [[h["loss"], *h["validation"].values()] for x in (ours, alone) for h in x.history]
    found["history"] = float(np.max(np.abs(np.subtract(both[:2], both[2:]))))
    # six batches, the last with one row: fewer than workers
    given = {"batch_size": 4, "compiled": COMPILED}
    both = [iso.evaluate(model, data, metrics, **given, distribute=w) for w in (world, None)]
    found["evaluate"] = abs(both[0]["accuracy"] - both[1]["accuracy"])
    both = [iso.predict(model, data[0], **given, distribute=w) for w in (world, None)]
    found["predict"] = float(np.max(np.abs(np.subtract(*iso.to_numpy(both)))))
    path = iso.predict(model, data[0], **given, distribute=world, out=Path(FOLDER) / "all.npy")
    found["file"] = float(np.max(np.abs(np.load(path) - iso.to_numpy(both[1]))))
    with iso.use_backend(BACKEND) as xp:
        local = xp.asarray([1.0, 2.0]) * (world.rank + 1)
        mean = world.mean({"x": local}, weight=world.rank)
        found["mean"] = iso.to_numpy(mean["x"]).tolist()
        found["fetch"] = world.fetch(local).tolist()
    world.barrier()
    return found


def state(world):
    """Running statistics and dropout."""
    step = iso.train_step(
        problem.plain_loss, problem.OPTIMIZERS["sgd"](), distribute=world, compiled=COMPILED
    )
    state = step.init(problem.made(BACKEND, problem.Normed))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(3):
            batch = iso.convert(problem.data(16, number), BACKEND)
            state, _ = step(state, *world.share(batch))
    model = state.model
    wanted = problem.made(BACKEND, problem.Normed)
    alone = iso.train_step(problem.plain_loss, problem.OPTIMIZERS["sgd"](), **ALONE)
    single = alone.init(wanted)
    for number in range(3):
        single, _ = alone(single, *iso.convert(problem.data(16, number), BACKEND))
    pairs = [problem.flat(m) for m in (model, single.model)]
    return {
        "by parts": 0.0 if world.is_global else by_parts(world),
        "warned": [str(w.message) for w in caught if "averaged over" in str(w.message)],
        "bits": digest([model.v, tree.flatten_whole(model)[0]]),
        "apart": max(float(np.max(np.abs(x - pairs[1][k]))) for k, x in pairs[0].items()),
        "finite": all(bool(np.isfinite(x).all()) for x in pairs[0].values()),
    }


def by_parts(world):
    """Running statistics against steps of one process with the rows of each worker, whose results
    are averaged by rows; a step of SGD is linear in the gradient.
    """
    sgd, kind = iso.optimizers.sgd(0.1), lambda: problem.Normed(0.0)
    ours = iso.train_step(problem.plain_loss, sgd, distribute=world, compiled=COMPILED)
    one = iso.train_step(problem.plain_loss, sgd, **ALONE)
    states = [step.init(problem.made(BACKEND, kind)) for step in (ours, one)]
    for number in range(3):
        batch = iso.convert(problem.data(13, number), BACKEND)
        states[0], _ = ours(states[0], *world.share(batch))
        rows = [bounds(13, r, world.shares) for r in range(world.shares)]
        parts = []
        for begin, end in rows:
            given = TrainState(copied(states[1].arrays), states[1].skeleton)
            parts.append(one(given, *(x[begin:end] for x in batch))[0].arrays)
        weights = [(end - begin) / 13 for begin, end in rows]

        def mean(*xs, weights=weights):
            if "float" not in str(xs[0].dtype):
                return xs[0]
            return sum(x * w for x, w in zip(xs, weights))

        states[1] = TrainState(tree.map(mean, *parts), states[1].skeleton)
    leaves = [
        [iso.to_numpy(x) for x in tree.flatten_whole(s.model)[0] if "float" in str(x.dtype)]
        for s in states
    ]
    return max(float(np.max(np.abs(x - y))) for x, y in zip(*leaves))


def details(world):
    """Options of a step, with unequal parts: how far the result is from that of one process."""
    found = {}
    net = lambda: problem.made(BACKEND)
    batches = [problem.data(11, n) for n in range(3)]
    losses = problem.plain_loss, problem.counted_loss
    # JAX cuts whole batches, which must be divisible, as in one process; one process in one part
    given = [problem.data(12, n) for n in range(3)] if world.is_global else batches
    found["accumulate"] = max(
        against(world, loss, net, given, {"accumulate": 3}, {}) for loss in losses
    )
    few = [problem.data(16), problem.data(1, 5)]
    found["few rows"] = max(against(world, loss, net, few) for loss in losses)
    rows = problem.data(13, 3)
    rows[1][-7:] = problem.IGNORED  # the last worker has nothing to count
    given = [rows, problem.data(13, 4)]
    found["aux"] = against(world, with_aux, net, given, {"has_aux": True})
    ones = np.ones((8, 1), np.float32)
    infinite = ones.copy()
    infinite[-1] = np.inf
    given = [(*problem.data(8, 2), x) for x in (ones, infinite, ones)]
    found["guard"] = against(world, scaled, net, given, {"guard": True})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        after, _ = trained(world, problem.plain_loss, frozen, batches, {})
    found["warned"] = [str(w.message) for w in caught if "averaged over" in str(w.message)]
    pair = [iso.to_numpy(m.out.w) for m in (after, frozen())]
    found["frozen moved"] = float(np.max(np.abs(np.subtract(*pair))))
    x = np.linspace(-1, 1, 20).reshape(5, 4)
    half = lambda: iso.convert({"w": np.linspace(0, 1, 4).astype(np.float16)}, BACKEND)
    found["float16"] = against(world, distance, half, [(x.astype(np.float16),)])
    if BACKEND != "numpy":
        full = lambda: iso.convert({"w": np.linspace(0, 1, 4).astype(np.float32)}, BACKEND)
        given = [(x.astype(np.float32),)]
        found["bfloat16"] = against(world, distance, full, given, {"compute": "bfloat16"})
    return found


def frozen():
    model = problem.made(BACKEND, problem.Normed)
    model.eval()
    model.freeze("out/*")
    return model


def distance(v, x):
    return iso.namespace(x).mean((v["w"] - x) ** 2)


def scaled(model, tokens, labels, x):
    return problem.plain_loss(model, tokens, labels) * iso.namespace(x).mean(x)


def with_aux(model, tokens, labels):
    """Aux: a mean over rows, and one over the labels that count."""
    xp = iso.namespace(tokens)
    y = model(tokens)[..., 0]
    some = xp.astype(labels >= 0, xp.float32)
    count = xp.sum(some)
    total = xp.sum(y * some) / (count / count)  # NaN if nothing counts
    aux = {"rows": xp.mean(y), "labels": iso.Mean(total, count)}
    return problem.counted_loss(model, tokens, labels), aux


def trained(world, loss, model, batches, options):
    """A model after some steps, and all that the steps returned."""
    compiled = ALONE if world is None else {"compiled": COMPILED}
    step = iso.train_step(loss, iso.optimizers.sgd(0.1), distribute=world, **compiled, **options)
    state, seen = step.init(model()), []
    for batch in batches:
        batch = iso.convert(batch, BACKEND)
        part, rows = (batch, None) if world is None else world.cut(batch)
        state, value, _, aux = step.run(state, part, rows)
        seen += [float(x) for x in tree.flatten(iso.to_numpy([value, aux]))[0]]
    return state.model, seen


def against(world, loss, model, batches, options=None, alone=None):
    """The largest difference from one process, of variables, losses and aux."""
    options = options or {}
    ours = trained(world, loss, model, batches, options)
    one = trained(None, loss, model, batches, options if alone is None else alone)
    leaves = [problem.flat(m) for m, _ in (ours, one)]
    far = max(float(np.max(np.abs(x - leaves[1][k]))) for k, x in leaves[0].items())
    values = np.abs(np.subtract(ours[1], one[1])) / np.maximum(np.abs(one[1]), 1)
    assert np.array_equal(np.isnan(ours[1]), np.isnan(one[1]))
    return max(far, float(np.nanmax(values)))


def stops(world):
    """What processes decide together: interrupts, the end of the data, what is not finite; and what
    they must have in common.
    """
    found = {}

    def batches(number, wide=problem.LENGTH, seen=lambda i: None):
        for i in range(number):
            seen(i)
            x, y = problem.data(8, i)
            yield iso.convert((x[:, :wide], y[:, :wide]), BACKEND)

    class Loader:
        def __init__(self, *args):
            self.args = args

        def __iter__(self):
            return batches(*self.args)

    def fitted(loader, **options):
        return iso.fit(
            problem.made(BACKEND), loader, problem.counted_loss, iso.optimizers.sgd(0.1),
            progress=False, compiled=COMPILED, distribute=world, **options,
        )  # fmt: skip

    interrupt = lambda i: os.kill(os.getpid(), signal.SIGINT) if i == 3 and world.rank == 1 else 0
    done = fitted(Loader(8, problem.LENGTH, interrupt))
    found["interrupted"] = [done.stopped, done.steps]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = fitted(Loader(5 - 2 * world.rank))
    found["early"] = [done.stopped, done.steps, [str(w.message) for w in caught]]
    for name, attempt in {
        "shapes": lambda: fitted(Loader(3, problem.LENGTH - world.rank)),
        "settings": lambda: fitted(Loader(3), accumulate=1 + world.rank),
        "model": lambda: iso.train_step(
            problem.plain_loss, iso.optimizers.sgd(0.1), distribute=world, compiled=COMPILED
        ).run(*other_model(world)),
        "values": lambda: iso.train_step(
            problem.plain_loss, iso.optimizers.sgd(0.1), distribute=world, compiled=COMPILED
        ).run(*other_model(world, [1.0 + world.rank, 1.0])),
    }.items():
        try:
            attempt()
            found[name] = "nothing was raised"
        except ValueError as error:
            found[name] = str(error)
    bad = {"x": np.ones((8, 2), np.float32)}
    bad["x"][-1] = np.nan  # a row of the last worker
    try:
        iso.fit(
            iso.convert({"w": np.ones(2, np.float32)}, BACKEND), iso.convert(bad["x"], BACKEND),
            squares, iso.optimizers.sgd(0.1),
            progress=False, compiled=COMPILED, distribute=world, batch_size=8, shuffle=False,
        )  # fmt: skip
    except iso.NonFiniteError as error:
        found["not finite"] = str(error)
    return found


def squares(v, x):
    xp = iso.namespace(x)
    return xp.mean(xp.matmul(x, v["w"]) ** 2)


def other_model(world, values=None):
    step = iso.train_step(problem.plain_loss, iso.optimizers.sgd(0.1), compiled=False)
    values = [0.0] * (2 + world.rank) if values is None else values
    made = iso.convert({"w": np.array(values, np.float32)}, BACKEND)
    batch = world.share(iso.convert(problem.data(8), BACKEND))
    return step.init(made), batch


def fails(world):
    """One rank fails at step 3, in the way that the option says."""
    how = OPTIONS["how"]
    step = iso.train_step(
        problem.plain_loss, problem.OPTIMIZERS["sgd"](), distribute=world, compiled=COMPILED
    )
    state = step.init(problem.made(BACKEND))
    for number in range(8):
        if number == 3 and world.rank == 1:
            print("rank 1 is at step 3", flush=True)
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "raise":
                raise ValueError("a mistake of the user")
            if how == "hang":
                time.sleep(100)
            if how == "early":
                break
        batch = iso.convert(problem.data(8, number), BACKEND)
        state, value = step(state, *world.share(batch))
        float(iso.to_numpy(value))
    return {}


def leaves(world):
    """Processes that end while the watchdog speaks with the engine all the time."""
    watchdog.TICK = 1e-4
    world.barrier()

    def meet():
        while True:
            world.dog.count += 1
            time.sleep(1e-5)

    threading.Thread(target=meet, daemon=True).start()
    time.sleep(0.2)
    return {}


def resumes(world):
    """A training that dies at a step, or goes on from its file."""
    data = iso.convert(problem.data(20), BACKEND)
    dies = int(OPTIONS.get("dies", "-1"))
    seen = [0]

    def loss(model, *batch):
        seen[0] += 1
        if seen[0] == dies and world.rank == world.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return problem.counted_loss(model, *batch)

    done = iso.fit(
        problem.made(BACKEND), data, loss, iso.optimizers.sgd(0.1), epochs=3, batch_size=6,
        save_every=1, checkpoint=Path(FOLDER) / "training", resume=True, progress=False,
        compiled=COMPILED, distribute=world,
    )  # fmt: skip
    leaves = {k: x.tolist() for k, x in problem.flat(done.model).items()}
    return {"losses": done.losses, "leaves": leaves}


def make_devices(number):
    """Several devices of TensorFlow in this process; JAX has been told by the environment."""
    import tensorflow as tf

    one = tf.config.list_physical_devices("CPU")[0]
    several = [tf.config.LogicalDeviceConfiguration()] * number
    tf.config.set_logical_device_configuration(one, several)


if __name__ == "__main__":
    if "devices" in OPTIONS and BACKEND == "tensorflow":
        make_devices(int(OPTIONS["devices"]))
    # tests may be started in the background, where shells turn interrupts off
    signal.signal(signal.SIGINT, signal.default_int_handler)
    given = {}
    if "explicit" in OPTIONS:  # as an actor does it that no launcher started
        words = [os.environ.pop(name) for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR")]
        port = os.environ.pop("MASTER_PORT")
        given = {"rank": int(words[0]), "size": int(words[1]), "address": f"{words[2]}:{port}"}
    world = iso.distribute.init(BACKEND, timeout=float(OPTIONS.get("timeout", "120")), **given)
    for job in JOBS.split("+"):
        result = globals()[job](world)
        result["world"] = [world.rank, world.size, world.shares]
        (Path(FOLDER) / f"{job}.{world.rank}.json").write_text(json.dumps(result))
