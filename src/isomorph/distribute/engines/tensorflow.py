"""tf.distribute: MultiWorkerMirroredStrategy for several processes, MirroredStrategy for several
devices of one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ...core import tree
from ..launchers import LOOPBACK, Process
from ..watchdog import of_launcher
from ..world import World, bounds, is_divided, rows_of

FIRST = tf.VariableAggregation.ONLY_FIRST_REPLICA  # a mean would hide that a reduction is missing


def join(process: Process | None, timeout: float, devices: Sequence[str] | None) -> World:
    if process is None:
        found = _local_devices() if devices is None else list(devices)
        return Mirrored(found, timeout) if len(found) > 1 else World("tensorflow", timeout=timeout)
    workers = process.workers or _on_one_machine(process)
    cluster = tf.train.ClusterSpec({"worker": list(workers)})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        cluster, task_type="worker", task_id=process.rank, rpc_layer="grpc"
    )
    try:
        strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
    except RuntimeError as error:
        if "program startup" not in str(error):
            raise
        raise RuntimeError(
            "distribute: needed to join the other processes before TensorFlow computes anything, "
            "got a process that has computed; call iso.distribute.init() first"
        ) from error
    if strategy.num_replicas_in_sync != process.size:
        raise RuntimeError(
            f"distribute: needed one device in each of {process.size} processes for TensorFlow, "
            f"got {strategy.num_replicas_in_sync} in all; start one process for each GPU, and make "
            "only that one visible to it"
        )
    return MultiWorker(strategy, process, timeout)


def _local_devices() -> list[str]:
    """The GPUs, or several logical CPUs if the user has made them."""
    found = tf.config.list_logical_devices("GPU")
    return [d.name for d in found or tf.config.list_logical_devices("CPU")]


def _on_one_machine(process: Process) -> list[str]:
    """Addresses of processes that all run here; `isomorph launch` says free ports."""
    free = os.environ.get("ISOMORPH_PORTS", "").split(",")
    if len(free) == process.size and all(free):
        return [f"{LOOPBACK}:{port}" for port in free]
    host, _, port = process.address.rpartition(":")
    if os.environ.get("LOCAL_WORLD_SIZE") != str(process.size) and host != LOOPBACK:
        raise RuntimeError(
            f"distribute: needed the addresses of all {process.size} processes for TensorFlow, got "
            f"only that of the first, {process.address}; set TF_CONFIG, or give "
            'address="host:port,host:port,..." to init'
        )
    return [f"{host}:{int(port) + 1 + rank}" for rank in range(process.size)]


class MultiWorker(World):
    """Each process computes with its rows; collective operations of TensorFlow add up."""

    engine = "MultiWorkerMirroredStrategy"

    def __init__(self, strategy: Any, process: Process, timeout: float):
        self.strategy = strategy
        self._sum = tf.function(lambda x: strategy.run(_added, (x,)), autograph=False)
        super().__init__("tensorflow", process.rank, process.size, timeout)

    def sum(self, flat: Any) -> Any:
        return self._sum(flat)

    def count(self, yes: bool) -> int:
        return int(self.sum(tf.constant([int(yes)]))[0])

    def gather(self, text: str) -> list[str]:
        raw = np.frombuffer(text.encode(), np.uint8)
        sizes = np.zeros(self.size, np.int32)
        sizes[self.rank] = raw.size
        sizes = self.sum(tf.constant(sizes)).numpy()
        table = np.zeros((self.size, int(max(sizes)) + 1), np.int32)  # no message of nothing
        table[self.rank, : raw.size] = raw
        table = self.sum(tf.constant(table.ravel())).numpy().reshape(table.shape)
        return [bytes(row[:n].astype(np.uint8)).decode() for row, n in zip(table, sizes.tolist())]

    def exchange(self) -> Any:
        """TensorFlow has no store that answers while a collective waits; `isomorph launch` has."""
        return of_launcher(self.rank, self.size)


def _added(x: Any) -> Any:
    context: Any = tf.distribute.get_replica_context()
    # an argument of a graph has no device yet, and the reduction asks for it
    return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(x))


class Mirrored(World):
    """One process whose devices each compute with their rows, in one program."""

    def __init__(self, devices: list[str], timeout: float):
        self.strategy = tf.distribute.MirroredStrategy(devices)
        self.engine = f"MirroredStrategy of {len(devices)} devices"
        super().__init__("tensorflow", timeout=timeout)
        self.shares = len(devices)

    def sum(self, flat: Any) -> Any:
        return _added(flat)

    def number(self) -> Any:
        context: Any = tf.distribute.get_replica_context()
        return tf.cast(context.replica_id_in_sync_group, tf.int32)

    def placed(self, arrays: Any) -> Any:
        with self.strategy.scope():
            make = lambda x: tf.Variable(x, trainable=False, aggregation=FIRST)
            return tree.map(lambda x: make(x) if tf.is_tensor(x) else x, arrays)

    def local(self, arrays: Any) -> Any:
        return tree.map(self._here, arrays)

    def _here(self, x: Any) -> Any:
        if not hasattr(x, "values"):  # not one of several
            return x
        first = self.strategy.experimental_local_results(x)[0]
        return first.read_value() if isinstance(first, tf.Variable) else first

    def cut(self, batch: Any) -> tuple[Any, int]:
        rows = rows_of("distribute", batch)
        parts = [bounds(rows, i, self.shares) for i in range(self.shares)]

        def divided(x: Any) -> Any:
            if not is_divided(x):
                return x
            part = lambda i: slice(*parts[i]) if parts[i][0] < parts[i][1] else slice(0, 1)
            return self._values(lambda i: x[part(i)])

        return tree.map(divided, batch), self._values(lambda i: _count(parts[i]))

    def _values(self, make: Callable[[int], Any]) -> Any:
        return self.strategy.experimental_distribute_values_from_function(
            lambda context: make(context.replica_id_in_sync_group)
        )

    def program(self, one: Callable[..., tuple]) -> Callable[..., tuple]:
        made: list[tuple[list[Any], Any]] = []  # the variables that a program writes into, and it

        def call(arrays: Any, *rest: Any) -> tuple:
            variables, form = tree.flatten(arrays)
            if not made or any(x is not y for x, y in zip(made[0][0], variables)):
                made[:] = [(variables, self._assigning(one, variables, form))]
            # numbers as arrays: a new number would be a new program
            number = lambda x: tf.constant(x, tf.float32) if isinstance(x, float) else x
            outs = made[0][1](*tree.map(number, rest))
            return arrays, *tree.map(self._here, outs)

        return call

    def _assigning(self, one: Callable[..., tuple], variables: list[Any], form: Any) -> Any:
        def replica(*rest: Any) -> Any:
            values = [v.read_value() for v in variables]
            new, *outs = one(tree.unflatten(form, values), *rest)
            for v, x in zip(variables, tree.flatten(new)[0]):
                v.assign(x)
            return outs

        return tf.function(lambda *rest: self.strategy.run(replica, rest), autograph=False)


def _count(part: tuple[int, int]) -> Any:
    return tf.constant(part[1] - part[0], tf.float32)
