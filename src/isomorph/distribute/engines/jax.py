"""JAX: global arrays over the devices of all processes. Programs see whole batches, and XLA divides
the work; there is no reduction of ours.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...core import tree
from ..launchers import Process
from ..world import T, World, check_floats, is_divided, rows_of
from . import private

LATER = 60  # seconds: JAX ends the process without a word of who is late, so the watchdog is first


def join(process: Process | None, timeout: float, devices: Sequence[Any] | None) -> World:
    if process is not None:
        _initialize(process, timeout)
    found = list(jax.devices() if devices is None else devices)
    return JaxWorld(found, timeout)


def _initialize(process: Process, timeout: float) -> None:
    if jax.distributed.is_initialized():
        return
    host, _, port = process.address.rpartition(":")
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":  # torchrun itself is at this port
        port = str(int(port) + 1)
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            f"{host}:{port}", process.size, process.rank,
            initialization_timeout=int(timeout),
            heartbeat_timeout_seconds=int(timeout) + LATER,
            shutdown_timeout_seconds=10,
        )  # fmt: skip
    except RuntimeError as error:
        if "before any JAX" not in str(error):
            raise
        raise RuntimeError(
            "distribute: needed to join the other processes before JAX computes anything, got a "
            "process that has computed; call iso.distribute.init() first"
        ) from error


class JaxWorld(World):
    """A mesh of all devices with one axis, along which batches are divided."""

    is_global = True

    def __init__(self, devices: list[Any], timeout: float):
        self.mesh = Mesh(np.array(devices), ("data",))
        self.by_rows = NamedSharding(self.mesh, PartitionSpec("data"))
        self.on_all = NamedSharding(self.mesh, PartitionSpec())
        self.engine = f"{len(devices)} devices"
        self.calls = 0
        super().__init__("jax", jax.process_index(), jax.process_count(), timeout)
        self.shares = len(devices)

    def gather(self, text: str) -> list[str]:
        if self.size == 1:
            return [text]
        client = private.coordination()
        if client is None:
            raise RuntimeError("distribute: needed JAX's coordination service, got none")
        self.calls += 1
        place = f"isomorph/gather/{self.calls}"
        client.key_value_set(f"{place}/{self.rank}", text or " ")
        wait = int((self.timeout + LATER) * 1000)
        found = [client.blocking_key_value_get(f"{place}/{r}", wait) for r in range(self.size)]
        if not self.rank and self.calls > 2:  # all have read what is two calls old
            client.key_value_delete(f"isomorph/gather/{self.calls - 2}/")
        return ["" if word == " " else word for word in found]

    def flags(self, stop: float) -> Any:
        values = np.full(self.shares, stop, np.float32)
        return jax.make_array_from_callback(values.shape, self.by_rows, lambda i: values[i])

    def exchange(self) -> Any:
        client = private.coordination()
        return None if client is None else _Values(client, self.rank, self.size)

    def expect(self, x: Any) -> None:
        self.dog.expect(x.is_ready)

    def placed(self, arrays: Any) -> Any:
        return tree.map(self._everywhere, arrays)

    def _everywhere(self, x: Any) -> Any:
        if not isinstance(x, (jax.Array, np.ndarray)):
            return x
        if isinstance(x, jax.Array) and x.sharding == self.on_all:
            return x
        values = np.asarray(x)
        return jax.make_array_from_callback(values.shape, self.on_all, lambda i: values[i])

    def kept(self, arrays: Any) -> Any:
        keep = lambda x: jax.lax.with_sharding_constraint(x, self.on_all)
        return tree.map(lambda x: keep(x) if isinstance(x, jax.Array) else x, arrays)

    def local(self, arrays: Any) -> Any:
        """The part on the first device of this process, which is the whole."""
        here = lambda x: x.addressable_data(0) if isinstance(x, jax.Array) else x
        return tree.map(here, arrays)

    def mean(self, nest: T, weight: float = 1.0) -> T:
        leaves, form = tree.flatten(nest)
        check_floats(leaves, tree.paths(nest))
        if self.size == 1:
            return nest
        with self.dog.watching("mean"):
            return tree.unflatten(form, self._means(leaves, weight))

    def _means(self, leaves: list[Any], weight: float) -> list[Any]:
        weights = np.asarray(multihost_utils.process_allgather(np.array(weight, np.float32)))
        whole = weights.sum()

        def one(x: Any) -> Any:
            if isinstance(x, jax.Array) and not x.is_fully_addressable:
                return x  # the same array in all processes
            rows = np.asarray(multihost_utils.process_allgather(np.asarray(x)))
            kept = rows[weights != 0], weights[weights != 0].astype(rows.dtype)
            return jax.numpy.asarray(np.tensordot(kept[1], kept[0], 1) / whole, dtype=x.dtype)

        return [one(x) for x in leaves]

    def fetch(self, nest: Any) -> Any:
        return tree.map(self._fetched, nest)

    def _fetched(self, x: Any) -> Any:
        if not isinstance(x, jax.Array):
            return x
        if x.is_fully_addressable or x.is_fully_replicated:
            return np.asarray(x)
        return np.asarray(multihost_utils.process_allgather(x, tiled=True))

    def whole(self, nest: Any, total: int) -> Any:
        return tree.map(lambda x: jax.numpy.asarray(self._fetched(x)), nest)

    def cut(self, batch: Any) -> tuple[Any, int]:
        """The whole batch, divided among the devices; every device has all of it if the rows
        cannot be divided.
        """
        rows = rows_of("distribute", batch)
        sharding = self.on_all if rows % self.shares else self.by_rows

        def placed(x: Any) -> Any:
            if not is_divided(x) or (isinstance(x, jax.Array) and x.sharding == sharding):
                return x
            if self.size == 1:
                return jax.device_put(x, sharding)
            values = np.asarray(x)
            return jax.make_array_from_callback(values.shape, sharding, lambda i: values[i])

        return tree.map(placed, batch), rows


class _Values:
    def __init__(self, client: Any, rank: int, size: int):
        self.client, self.rank, self.size = client, rank, size

    def tell(self, count: int) -> None:
        self.client.key_value_set(f"isomorph/at/{self.rank}", str(count), allow_overwrite=True)

    def read(self) -> list[int | None]:
        found: list[int | None] = []
        for rank in range(self.size):
            try:
                found.append(int(self.client.key_value_try_get(f"isomorph/at/{rank}")))
            except Exception:  # JAX's own error for a key that is not there
                found.append(None)
        return found
