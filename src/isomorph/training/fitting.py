"""A whole training: epochs, validation, early stopping, checkpoints and resuming from them, and an
orderly end after errors and interrupts.

The checkpoint holds everything that decides the next steps: the arrays and the place in the data,
whose order follows from a seed. So a training that was killed and resumed ends with the same
weights as one that was not.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from ..arrays.conversion import number_of
from ..core import tree
from ..core.dispatch import backend_of, find_backend
from ..core.means import Running
from ..distribute.launchers import warn_if_apart
from ..distribute.world import World, digest_of, shapes_of
from ..gradients.transforms import value_and_grad
from ..optimizers.pairs import Optimizer
from ..version import __version__
from .checkpoint import load, save
from .choosing import Compiled, check_compiled, pays
from .data import Arrays, Stream, batches, check_batch, check_device, check_taken
from .errors import CheckpointError
from .evaluating import Evaluation, check_metrics
from .interrupts import interruptible
from .reporting import Log, Progress
from .settings import check_settings, first_bad
from .sharing import flags_of, heard, shares
from .stepping import TrainState, TrainStep, copied, held

FIRST = 64  # rows of the data that all processes compare


@dataclass
class Fit:
    """The result of a training: the model, the loss of every step, a record per epoch.

    >>> loss = lambda v, x: np.mean((v - x) ** 2)
    >>> iso.fit(np.zeros(1), np.ones((4, 1)), loss, iso.optimizers.sgd(0.5), progress=False)
    Fit(done after 1 steps, loss 1)
    """

    model: Any  # after the last step; with `patience`, after the best epoch
    losses: list[float]  # of every step
    history: list[dict[str, Any]]  # one record per epoch
    steps: int
    stopped: str  # "done", "patience" or "interrupted"

    def __repr__(self) -> str:
        loss = f", loss {self.losses[-1]:.4g}" if len(self.losses) else ""
        return f"Fit({self.stopped} after {self.steps} steps{loss})"


class NonFiniteError(ArithmeticError):
    """A training met a loss, or made a variable, that is not finite. `fit` is the result up to that
    point, a `Fit`.

    >>> issubclass(iso.NonFiniteError, ArithmeticError)
    True
    """

    fit: Fit


@dataclass
class Record:
    """Everything about a training except its arrays; a checkpoint holds both."""

    settings: dict[str, Any]
    mode: dict[str, Any]  # the backend, and whether it compiles
    epoch: int = 0
    position: int = 0  # batches of this epoch that are done
    losses: list[float] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    running: Running = field(default_factory=Running)  # mean loss of this epoch
    best: float = math.inf
    waited: int = 0  # epochs since the best one

    @property
    def step(self) -> int:
        return len(self.losses)

    def text(self) -> str:
        return json.dumps(vars(self) | {
            "best": self.best.hex(), "losses": [x.hex() for x in self.losses],
            "running": [x.hex() for x in (self.running.total, self.running.count)],
        })  # fmt: skip

    def read(self, text: str, path: Any) -> None:
        found = json.loads(text) | {"mode": self.mode}
        if missing := sorted(vars(self).keys() - found):
            raise CheckpointError(
                f"fit: needed {', '.join(missing)} in {path} to resume the training, got a file "
                "of an older version without them"
            )
        wrong = [
            f"{k} was {found['settings'].get(k)!r}, is {v!r}"
            for k, v in self.settings.items() if found["settings"].get(k) != v
        ]  # fmt: skip
        if wrong:
            raise ValueError(
                f"fit: needed the settings of the training in {path} to resume it, got others: "
                f"{'; '.join(wrong)}; give the same settings, or another file"
            )
        found["best"] = float.fromhex(found["best"])
        found["losses"] = [float.fromhex(x) for x in found["losses"]]
        found["running"] = Running(*map(float.fromhex, found["running"]))
        vars(self).update(found)


def fit(
    model: Any,
    data: Any,
    loss: Callable[..., Any],
    optimizer: Optimizer,
    epochs: int = 1,
    *,
    steps: int | None = None,
    batch_size: int = 32,
    shuffle: bool = True,
    seed: int = 0,
    drop_last: bool = False,
    validation: Any = None,
    metrics: Mapping[str, Callable[..., Any]] | None = None,
    patience: int | None = None,
    checkpoint: str | PathLike[str] | None = None,
    save_every: int | None = None,
    resume: bool = False,
    accumulate: int = 1,
    compute: str | None = None,
    compiled: Compiled = "auto",
    log: str | PathLike[str] | None = None,
    name: str | None = None,
    progress: bool = True,
    distribute: World | None = None,
) -> Fit:
    """Train a model and return the result, a `Fit`; the given model is not changed.

    `data` is a nest of arrays with one example per row, split into batches in an order that `seed`
    decides, the same on every backend; or an iterable of batches, such as the frameworks' own
    loaders. `loss(model, *batch)` is as in `train_step`, and so are `accumulate` and `compute`. The
    loss of an epoch is the mean over its examples, or over the counts of an `iso.Mean`; a step with
    count 0, whose loss is NaN, changes nothing and does not end the training. `steps` limits the
    number of steps, whatever the epochs.

    After each epoch, and if `steps` ends one early, the loss and `metrics`, functions like it, are
    averaged over `validation`, with the model in `eval()`. With `patience`, the training stops when
    the validation loss has not decreased for that many epochs, and the model of the best epoch is
    returned.

    With `compiled="auto"` steps are compiled where their number pays for it: by the number of steps
    asked for and the size of the model, and always on JAX or if the number is not known. If they
    are not compiled, a line says so; then `loss` is called at every step. A smaller last batch and
    the validation are decided in the same way. True and False decide it, and so does a checkpoint
    that is resumed on the same backend.

    `checkpoint` is a file that holds the training after every `save_every` steps and every epoch.
    With `resume` the training continues from that file, if it exists, and ends as if it had never
    stopped (with a loader, if that gives the same batches again). Ctrl-C stops it after the current
    step. A loss or gradient that is not finite raises `NonFiniteError`, which names the first array
    that is not finite; the file is not changed. A file that cannot be written is a warning. `log`
    is a file of JSON lines, `name` the name of the training in plots.

    With `distribute`, a world of `iso.distribute.init`, all its processes train one model: batches
    are the same for any number of them, and each computes its part of every batch (`batch_size` is
    that of the whole). They stop together, and rank 0 writes the files; a checkpoint can be resumed
    with another number of processes and on another backend. Without it, processes that a launcher
    started train alone, and all but the first warn; `ISOMORPH_DISTRIBUTE=off` in the environment
    turns that off.

    >>> x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    >>> with iso.use_key(0):
    ...     model = iso.Linear(1, 1)
    >>> loss = lambda model, x, y: iso.mse(model(x), y)
    >>> done = iso.fit(model, (x, 3 * x), loss, iso.optimizers.adam(0.1), 60, progress=False)
    >>> done.steps, round(float(done.model.v["w"][0, 0]), 1)
    (120, 3.0)
    """
    check_settings(
        epochs, steps, batch_size, patience, checkpoint, save_every, resume, validation, seed
    )
    check_compiled("fit", compiled)
    if distribute is None:
        warn_if_apart(checkpoint is not None)
    measured = check_metrics("fit", metrics)
    if measured and validation is None:
        raise ValueError("fit: needed validation= for metrics, got none")
    if "loss" in measured:
        raise ValueError("fit: needed another name for a metric: loss is always measured")
    found = batches("fit", data, batch_size, shuffle, seed, drop_last)
    asked = steps_of(found, epochs, steps)
    is_auto = compiled == "auto"
    if is_auto:
        known = distribute is None or (isinstance(found, Arrays) and not distribute.is_global)
        mode = kept_mode(checkpoint, model) if resume else None
        compiled = pays(model, asked if known else None, batch_size) if mode is None else mode
    step = TrainStep(
        loss, optimizer, False, compiled, compute, accumulate, guard=True, name="fit",
        world=distribute,
    )  # fmt: skip
    state = step.init(model)
    xp = backend_of(tree.flatten(state.arrays["variables"])[0][0])
    settings = {
        "seed": seed, "batch_size": batch_size, "shuffle": bool(shuffle),
        "drop_last": bool(drop_last), "examples": found.examples, "accumulate": accumulate,
        "compute": compute, "patience": patience,
    }  # fmt: skip
    mode = {"backend": xp.name, "compiled": compiled}
    run = Training(step, state, found, Record(settings, mode), xp)
    run.is_auto = is_auto
    tails = True
    if is_auto and distribute is None:
        run.tails = tails = pays(model, epochs, batch_size)
    if checkpoint is not None:
        run.path, run.save_every = Path(checkpoint), save_every
    run.limits = (epochs, steps)
    if validation is not None:
        run.validation = batches("fit validation", validation, batch_size, False, seed, False)
        count = run.validation.batches
        checks = pays(model, None if count is None else count * epochs, batch_size)
        ways = (checks, tails) if is_auto else (compiled, True)
        run.evaluation = Evaluation("fit validation", model, {"loss": loss, **measured}, *ways)
        run.patience = patience
    if resume and run.path is not None and run.path.exists():
        run.restore()
    run.agree(epochs, steps)
    if not run.leads:
        log, progress = None, False
    run.log = Log(log, run.record.step, run.record.epoch, name=name or xp.name, backend=xp.name)
    run.progress = Progress(progress, asked, run.record.step)
    if is_auto and not compiled:
        run.progress.say(
            f"fit: {asked} steps: running uncompiled, the loss is called at every step; "
            "compiled=True compiles"
        )
    return run.go()


def steps_of(data: Arrays | Stream, epochs: int, steps: int | None) -> int | None:
    """The number of steps asked for, if it is known."""
    all_ = None if data.batches is None else data.batches * epochs
    return all_ if steps is None else steps if all_ is None else min(all_, steps)


def kept_mode(path: str | PathLike[str] | None, model: Any) -> bool | None:
    """Whether the training in a checkpoint was compiled on the model's backend; None if there is no
    such training. Before there was a choice, all were.
    """
    if path is None or not Path(path).exists():
        return None
    mode = json.loads(load(path, record="")["record"]).get("mode")
    if mode is None:
        return True
    names = {xp.name for x in tree.flatten(model)[0] if (xp := find_backend(x)) is not None}
    return mode["compiled"] if names == {mode["backend"]} else None


class Training:
    """A training while it runs."""

    path: Path | None = None
    save_every: int | None = None
    evaluation: Evaluation | None = None
    validation: Arrays | Stream | None = None
    patience: int | None = None
    best: dict[str, Any] | None = None  # the arrays of the best epoch
    limits: tuple[int, int | None]
    is_auto = False  # whether it was not said whether to compile
    tails = True  # whether a smaller batch is compiled, if others are
    progress: Progress
    log: Log

    def __init__(
        self, step: TrainStep, state: TrainState, data: Arrays | Stream, record: Record, xp: Any
    ):
        self.step, self.state, self.data, self.record, self.xp = step, state, data, record, xp
        self.unsaved: list[dict[str, Any]] = []  # records of the history that are in no checkpoint
        self.taken = False  # whether the loss was checked to take such batches
        self.rounds = 0  # passes over the validation data
        self.sizes: set[int] = set()  # of the batches that steps were compiled for
        self.world = step.world
        self.leads = self.world is None or not self.world.rank  # whether it writes files
        self.is_stopped = False  # whether one of the processes was interrupted
        self.waiting: list[tuple[int, tuple, Any, Any, Any]] = []  # steps whose loss is not read
        self.saved: int | None = None  # the step in the file
        self.began = time.monotonic()
        first = tree.flatten(state.arrays["variables"])[0][0]
        # keeps a device with a queue busy: the loss is read one step later
        self.ahead = int(xp.runs_ahead(first))

    def go(self) -> Fit:
        stopped = "done"
        try:
            with interruptible() as interrupted:
                while self.unfinished() and not self.must_stop(interrupted):
                    self.epoch(interrupted)
                if self.over():
                    stopped = "patience"
                elif self.unfinished():
                    stopped = "interrupted"
                    self.end_interrupted()
                elif self.record.position:
                    self.end_early()
        finally:
            self.progress.stop()
            self.log.close()
        if self.world is not None and self.path is not None:
            self.world.barrier()  # until the file is there
        return self.result(stopped)

    def agree(self, *limits: Any) -> None:
        """Raise if the processes do not train in the same way."""
        if self.world is not None:
            facts = {**self.record.settings, "limits": limits, "step": self.record.step}
            facts |= {"isomorph": __version__, "saves": self.path is not None}
            arrays = [x.leaves for x in self.all_data() if isinstance(x, Arrays)]
            facts["data"] = [(shapes_of(x), digest_of([y[:FIRST] for y in x])) for x in arrays]
            lines = [f"{name} {value!r}" for name, value in facts.items()]
            self.world.check_equal("settings, versions and checkpoint", lines)

    def all_data(self) -> list[Any]:
        return [self.data] if self.validation is None else [self.data, self.validation]

    def must_stop(self, interrupted: Callable[[], bool]) -> bool:
        """Whether to stop; processes hear of each other's interrupts in a step."""
        alone = self.world is None or self.world.size == 1
        return interrupted() if alone else self.is_stopped

    def unfinished(self) -> bool:
        return self.record.epoch < self.limits[0] and not self.over() and not self.full()

    def over(self) -> bool:
        return self.patience is not None and self.record.waited >= self.patience

    def full(self) -> bool:
        steps = self.limits[1]
        return steps is not None and self.record.step + len(self.waiting) >= steps

    def epoch(self, interrupted: Callable[[], bool]) -> None:
        """One epoch, or the rest of it, or as far as the step limit or an interrupt allows."""
        record = self.record
        for share in shares(self.data, self.world, record.epoch, record.position):
            rows = check_batch("fit", share.shown, self.xp)
            if not self.taken:
                if self.world is None or not self.world.is_global:
                    check_device("fit", self.state.arrays["variables"], share.shown, self.xp)
                check_taken("fit", self.step.loss, share.shown)
                self.taken = True
            flags = flags_of(self.world, share, interrupted())
            is_tail = isinstance(self.data, Arrays) and rows < self.data.size
            as_it_is = is_tail and not self.tails
            try:
                self.state, loss, count, _ = self.step.run(
                    self.state, share.batch, share.rows, flags, share.total, as_it_is
                )
            except Exception as error:
                if self.is_auto and self.step.compiled and not as_it_is and rows not in self.sizes:
                    error.add_note("fit: compiled=False runs it as it is")
                raise
            self.sizes.add(rows)
            record.position += 1
            count = rows if count is None else count
            number = record.step + len(self.waiting) + 1
            self.waiting.append((number, share.shown, self.state.flags, loss, count))
            self.look(leave=self.ahead)
            if self.full() or self.must_stop(interrupted):
                break
            if self.save_every and (record.step + len(self.waiting)) % self.save_every == 0:
                self.save()
        else:
            self.finish_epoch()
            return
        if self.full() and record.position == self.data.batches:
            self.finish_epoch()
        else:
            self.save()

    def look(self, leave: int = 0) -> None:
        """Read the losses of all steps except the last `leave`, which may still run."""
        while len(self.waiting) > leave:
            number, batch, flags, *found = self.waiting.pop(0)
            self.is_stopped |= heard(self.world, flags, batch)
            value, count = map(number_of, found)
            if count and not math.isfinite(value):
                self.raise_not_finite(number, self.diagnosis(batch))
            self.record.losses.append(value)
            self.record.running.add(value * count, count)
            self.progress.step(f"{self.record.epoch + 1}/{self.limits[0]}", value)
            seconds = round(time.monotonic() - self.began, 4)
            self.log.write(
                "step", step=number, epoch=self.record.epoch + 1, loss=value, seconds=seconds
            )

    def finish_epoch(self) -> None:
        summary = self.summary()
        record = self.record
        record.history.append(summary)
        record.epoch, record.position, record.running = record.epoch + 1, 0, Running()
        self.log.write("epoch", **summary)
        self.save()

    def end_early(self) -> None:
        """Summarise the steps of an unfinished epoch, for the result only: a resumed training will
        finish that epoch.
        """
        self.unsaved.append(self.summary())
        self.log.write("end", **self.unsaved[-1])

    def summary(self) -> dict[str, Any]:
        """Measure this epoch so far."""
        self.look()
        self.check_arrays()
        record = self.record
        mean = record.running.mean
        summary: dict[str, Any] = {"epoch": record.epoch + 1, "step": record.step, "loss": mean}
        said = ""
        if self.evaluation is not None and self.validation is not None:
            arrays = self.state.arrays
            if self.world is not None and not self.world.is_global:
                arrays = self.world.local(arrays)
            found = self.evaluation.over(arrays, self.validation, self.rounds, self.world)
            self.rounds += 1
            summary["validation"] = found
            said = f"; validation: {', '.join(f'{k} {v:.4g}' for k, v in found.items())}"
            if self.patience is not None:
                record.waited += 1
                if found["loss"] < record.best:
                    record.best, record.waited = found["loss"], 0
                    self.best = copied(self.state.arrays)
        self.progress.say(f"epoch {summary['epoch']}/{self.limits[0]}: loss {mean:.4g}{said}")
        return summary

    # Checkpoints

    def save(self) -> None:
        self.look()
        self.check_arrays()
        if self.path is None:
            return
        if not self.leads:
            self.saved = self.record.step
            return
        if self.saved == self.record.step and self.record.position:
            return  # already saved
        nests: dict[str, Any] = {"train": self.state.arrays}
        nests |= {} if self.best is None else {"best": self.best}
        nests = nests if self.world is None else self.world.local(nests)
        try:
            save(self.path, record=self.record.text(), **nests)
            self.saved = self.record.step
        except (OSError, CheckpointError) as error:
            kept = "there is no file" if self.saved is None else f"the file holds step {self.saved}"
            warnings.warn(
                f"fit: the checkpoint of step {self.record.step} could not be written, {kept}, the "
                f"training continues; free disk space: {error}",
                RuntimeWarning,
                stacklevel=2,
            )

    def restore(self) -> None:
        path: Any = self.path
        self.record.read(load(path, record="")["record"], path)
        best: Any = {"best": self.state.arrays} if self.record.best < math.inf else {}
        found = load(path, train=self.state.arrays, **best)
        self.state = self.step.begun(found["train"], self.state.skeleton)
        self.best = found.get("best")
        self.saved = self.record.step

    def end_interrupted(self) -> None:
        where = ""
        if self.path is not None and self.saved == self.record.step:
            where = f"; saved in {self.path}, continue with resume=True"
        self.progress.say(f"fit: interrupted after step {self.record.step}{where}")

    def result(self, stopped: str) -> Fit:
        arrays = self.state.arrays if self.best is None else self.best
        model = TrainState(arrays, self.state.skeleton, world=self.world).model
        losses, history = list(self.record.losses), [*self.record.history, *self.unsaved]
        return Fit(model, losses, history, self.record.step, stopped)

    def raise_not_finite(self, number: int, what: str) -> None:
        kept = ""
        if self.path is not None:
            kept = (
                "; no checkpoint had been written" if self.saved is None
                else f"; {self.path} holds step {self.saved}"
            )  # fmt: skip
        self.log.write("not finite", step=number, epoch=self.record.epoch + 1, why=what)
        error = NonFiniteError(
            f"fit: needed finite numbers, got a value that is not finite at step {number}, epoch "
            f"{self.record.epoch + 1}: {what}{kept}"
        )
        error.fit = self.result("not finite")
        raise error

    def check_arrays(self) -> None:
        """Finite gradients may still have made an array too large."""
        bad = first_bad({k: self.state.arrays[k] for k in ("variables", "optimizer")})
        if bad is not None:
            what = f"after finite gradients, {bad} is not finite; try a lower learning rate"
            self.raise_not_finite(self.record.step, what)

    def diagnosis(self, batch: tuple) -> str:
        """Where a value that is not finite appears first: in the batch, in the variables, in the
        loss, or in a gradient.
        """
        arrays = self.state.arrays
        parts = held(arrays if self.world is None else self.world.local(arrays))
        bad = first_bad({"batch": batch}) or first_bad({"variables": parts.variables})
        if bad is not None:
            return f"the first array that is not finite is {bad}"
        objective = partial(self.step._objective, self.xp, self.state.skeleton, parts)
        (loss, _), grads = value_and_grad(objective, has_aux=True)(
            parts.variables, parts.state, batch
        )
        value = number_of(loss)
        bad = first_bad({"gradient": grads})
        if not math.isfinite(value):
            also = "" if bad is None else f", and the first gradient that is not finite is {bad}"
            return f"batch and variables are finite, but the loss is {value}{also}"
        if bad is not None:
            return f"batch, variables and loss ({value:.4g}) are finite, but {bad} is not"
        why = "it is a matter of the random numbers"
        if self.world is not None and self.world.size > 1:
            why = f"it came from another process than rank {self.world.rank}"
        return f"computed again, loss ({value:.4g}) and gradients are finite; {why}"
