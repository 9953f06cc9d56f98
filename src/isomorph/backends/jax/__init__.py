"""JAX: `jax.numpy` has the whole vocabulary, except for some result dtypes (`names`)."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.dtypes import canonicalize_dtype, float0
from jax.errors import TracerArrayConversionError
from jax.experimental.compilation_cache import compilation_cache

from ...compile.slow_compilation import name_of
from ...core import tree
from ...core.dispatch import load
from ...gradients.custom import check_outputs
from .. import hosting
from ..explaining import DECIDES, DEVICES, INDEX, LEAVES, MASK, NUMBER, add, explained
from . import (
    convolution,
    factors,
    indexing,
    jitted_layers,
    key_order,
    linalg,
    names,
    pointwise,
    random,
)
from .layers import Layers
from .literals import LITERALS, native, without


def _hosts() -> list[Any]:
    """The CPU device, if JAX computes elsewhere by default."""
    try:
        return [] if jax.default_backend() == "cpu" else jax.devices("cpu")
    except RuntimeError:  # JAX was configured without a CPU
        return []


class JAX(Layers):
    name = "jax"
    arrays = (jax.Array, Tracer, *LITERALS)

    def vjp(xp, func, leaves, once=False, has_aux=True):
        outs, transpose, aux = jax.vjp(func, *leaves, has_aux=True)

        def pull(cotangents):
            try:
                return transpose(cotangents)
            except ValueError as error:
                if "Reverse-mode" in str(error) and "while_loop" in str(error):
                    raise NotImplementedError(ENDLESS) from error
                raise

        if not any(jnp.iscomplexobj(x) for x in (*outs, *leaves)):
            return outs, pull, aux
        # JAX transposes without conjugating
        return outs, lambda cotangents: _conj(pull(_conj(cotangents))), aux

    def custom_call(xp, rule, arrays):
        # In JAX's own transforms, NumPy arrays and Python numbers arrive unchanged, or as literals;
        # the rule needs arrays.
        def bwd(kept, upstream):
            residuals, arrays = kept
            # JAX gives outputs that are not floats gradients of a special dtype
            upstream = [
                jnp.zeros(np.shape(g), int) if _is_float0(g) else native(g) for g in upstream
            ]
            return _conj(rule.bwd(residuals, _conj(upstream), arrays))

        def fwd(*arrays):
            arrays = tuple(map(native, arrays))
            outs, residuals = rule.fwd(*arrays)
            if any(isinstance(x, Tracer) for x in arrays):
                outs = call(*arrays)  # an outer differentiation uses the rule as well
            return outs, (residuals, arrays)

        call = jax.custom_vjp(lambda *arrays: rule.func(*map(native, arrays)))
        call.defvjp(fwd, bwd)
        return call(*arrays)

    def smooth(xp, function, arrays):
        return pointwise.program(xp, function)(*arrays)

    def map_rows(xp, func, *rows):
        return jax.vmap(func)(*rows)

    def host_call(xp, host, arrays):
        if not any(isinstance(x, Tracer) for x in arrays):
            return super().host_call(host, arrays)
        examples = hosting.like(host, [(x.shape, x.dtype) for x in arrays])
        likes = [np.empty(y.shape, canonicalize_dtype(y.dtype)) for y in examples]
        kinds = [jax.ShapeDtypeStruct(y.shape, y.dtype) for y in likes]

        dtypes = [x.dtype for x in arrays]

        def call(*values):
            found = [np.asarray(x) for x in values]
            got = [x.dtype for x in found]
            if got != dtypes:
                raise TypeError(
                    f"host_function: needed {dtypes}, got {got}: JAX called it where 64 bits are "
                    "off, as in JAX's own threads inside `jax.enable_x64()`; use "
                    'jax.config.update("jax_enable_x64", True)'
                )
            return hosting.results(host.func(*found), likes)

        # its derivative is the rule around it: a callback cannot have one
        arrays = jax.lax.stop_gradient(arrays)
        return tuple(jax.pure_callback(call, kinds, *arrays, vmap_method="sequential"))

    def placed(xp, arrays, others):
        """An array that is committed to a device commits all results computed from it, and JAX
        compiles another program for committed arrays.
        """
        is_there = lambda x: isinstance(x, jax.Array) and not isinstance(x, Tracer)
        fixed = [x for x in (*arrays, *others) if is_there(x) and x.committed]
        devices = {device for x in fixed for device in x.devices()}
        if len(devices) != 1:  # nothing is committed, or the array is sharded
            return arrays
        move = lambda x: jax.device_put(x, *devices) if is_there(x) and not x.committed else x
        return [move(x) for x in arrays]

    def keep_programs(xp, folder):
        jax.config.update("jax_compilation_cache_dir", str(folder / f"jax-{jax.__version__}"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        compilation_cache.reset_cache()  # it may have decided already that there is none

    def jit(xp, func, places=(), names=(), whole=None):
        run = explained(xp, func)

        def traced(*args, **kw):  # a new function: jax.jit caches by function
            if whole is None:
                return run(*args, **kw)
            whole.begin(xp)
            out = run(*args, **kw)
            kept = key_order.kept(out)
            if kept is not out:
                whole.after = key_order.released
            return kept

        traced.__name__ = name_of(func)  # shown in JAX's messages and profiles
        return jax.jit(traced, donate_argnums=places, donate_argnames=names)

    def keeps_programs(xp):
        return True

    def compiles_loops(xp):
        return True

    def kept_signature(xp, arrays):
        arrays = [*map(native, arrays)]
        return xp.is_tracing(arrays), *[(x.shape, x.dtype, x.aval.weak_type) for x in arrays]

    def kept_program(xp, func, arrays):
        run, arrays = jax.jit(func), [*map(native, arrays)]
        traced = run.trace(*arrays).jaxpr
        if xp.is_tracing(traced.consts):
            return None
        # a rule may see arrays of the program, and would be called after it
        if xp.is_tracing(arrays) and "custom_vjp_call" in str(traced):
            return None
        return lambda *arrays: run(*map(native, arrays))

    def explain(xp, error):
        if isinstance(error, jax.errors.TracerBoolConversionError):
            add(error, DECIDES)
        elif isinstance(error, jax.errors.TracerIntegerConversionError) or any(
            words in str(error) for words in WORDS
        ):
            add(error, INDEX)
        elif isinstance(error, jax.errors.NonConcreteBooleanIndexError):
            add(error, MASK)
        elif isinstance(error, TracerArrayConversionError) or _is_of_a_sequence(error):
            add(error, LEAVES)
        elif isinstance(error, jax.errors.ConcretizationTypeError):
            add(error, NUMBER)
        elif isinstance(error, ValueError) and "incompatible devices" in str(error):
            add(error, DEVICES)

    def is_watched(xp, x):
        return isinstance(x, Tracer)

    def checkpoint(xp, func, args, kw):
        leaves, form = tree.flatten((args, kw))
        where = [i for i, x in enumerate(leaves) if isinstance(x, xp.arrays)]
        after = {}

        def flat(*arrays):
            full = list(leaves)  # JAX would turn numbers into arrays, and refuses other leaves
            for i, x in zip(where, arrays):
                full[i] = x
            args, kw = tree.unflatten(form, full)
            out = func(*args, **kw)
            check_outputs("checkpoint", xp, out)
            outs, after["form"] = tree.flatten(out)
            after["others"] = [None if isinstance(y, xp.arrays) else y for y in outs]
            return [y if isinstance(y, xp.arrays) else None for y in outs]

        outs = jax.checkpoint(flat)(*(leaves[i] for i in where))
        both = [other if y is None else y for y, other in zip(outs, after["others"])]
        return tree.unflatten(after["form"], both)

    def native(xp, x):
        return native(x)

    def custom_root(xp, *args, **kw):
        return jax.lax.custom_root(*args, **kw)

    def custom_linear_solve(xp, *args, **kw):
        return jax.lax.custom_linear_solve(*args, **kw)

    def words(xp, key, counts):
        return random.words(key, counts)

    def draw(xp, meaning, key, start, shape, *args):
        if random.is_small(key, shape, args):
            drawn = load("numpy").draw(meaning, np.asarray(key), start, shape, *args)
            return xp.from_numpy(drawn, xp.device_of(key) if key.committed else None)
        return random.draw(xp, meaning, key, start, shape, args)

    def at_hand(xp, x):
        return None if isinstance(x, Tracer) else np.asarray(x)

    def quick(xp, key, shape, dtype, normal):
        return random.quick(key, shape, dtype, normal)

    def stop_gradient(xp, x, preserve_type=True):
        return native(jax.lax.stop_gradient(x))

    def to_numpy(xp, x):
        return np.asarray(native(x))

    def from_numpy(xp, x, device=None):
        x = np.asarray(x)
        if not x.dtype.isnative:
            x = x.astype(x.dtype.newbyteorder("="))
        dtype = canonicalize_dtype(x.dtype)
        x = x if dtype == x.dtype else _narrowed(x, dtype)
        if device is None:
            return jnp.asarray(x)
        return jax.device_put(x.copy(), device)  # it may keep the memory that it is given

    def dtype(xp, name):
        found = super().dtype(name)
        if found is not None and found in WIDE and not _has_64_bits():
            raise TypeError(f"dtype: {without(np.dtype(found).name)}")
        return found

    def unpack(xp, word, shape, fill, device):
        if word.endswith(("64", "128")) and word != "complex64" and not _has_64_bits():
            raise TypeError(without(word))
        return super().unpack(word, shape, fill, device)

    def borrow(xp, x):
        # JAX would silently narrow these; through NumPy their values are checked
        wide = any(word in str(x.dtype) for word in ("int64", "float64", "complex128"))
        return None if wide and not _has_64_bits() else super().borrow(x)

    def from_host(xp, x, device=None):
        default = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
        place = default if device is None else device
        if place is None and jax.default_backend() != "cpu":
            place = jax.devices()[0]
        is_host = all(d.platform == "cpu" for d in x.devices())
        return jax.device_put(x, place) if is_host and place is not None else x

    def named_device(xp, name):
        platform, _, number = name.partition(":")
        return jax.devices(platform)[int(number)]

    def is_tracing(xp, arrays):
        return any(isinstance(x, Tracer) for x in arrays)

    has_devices = staticmethod(cache(lambda: len({*jax.devices(), *_hosts()}) > 1))

    def fixed_device(xp, x):
        if isinstance(x, (Tracer, *LITERALS)) or not x.committed or len(x.devices()) > 1:
            return None  # JAX itself decides
        (device,) = x.devices()
        return f"{device.platform}:{device.id}"

    def renewed(xp, x):
        return jnp.array(jax.lax.stop_gradient(x), copy=True)  # a reshape would lose its sharding

    def device_of(xp, x):
        while isinstance(x, Tracer) and (inner := getattr(x, "primal", None)) is not None:
            x = inner  # it is differentiated eagerly
        # a tracer asked for its device searches its whole program for a reason to have none
        if isinstance(x, (Tracer, *LITERALS)) or len(x.sharding.device_set) > 1:
            return None  # an array of another shape cannot be divided as `x` is
        return x.device

    def placement(xp, x):
        return None if isinstance(x, (Tracer, *LITERALS)) else x.device

    def row_reader(xp, x, order):
        if order is not None:
            place = x.sharding if x.committed and len(x.sharding.device_set) == 1 else None
            order = jax.device_put(order, place)
        return lambda begin, end: _rows(x, order, begin, end - begin)

    def runs_ahead(xp, x):
        return any(d.platform != "cpu" for d in x.devices())

    def devices(xp):
        return [f"{d.platform}:{d.id}" for d in (*jax.devices(), *_hosts())]

    def thirds(xp, x):
        return jnp.split(x, 3, -1)  # its gradient is one array, not a sum of three

    def attention(xp, *arrays):
        return jitted_layers.attention(xp, *arrays)

    def lstm(xp, *arrays):
        return jitted_layers.lstm(xp, *arrays)

    def gru(xp, *arrays):
        return jitted_layers.gru(xp, *arrays)

    def has_quick_steps(xp):
        return jax.default_backend() == "cpu"

    def solve_triangular(xp, a, b, lower, trans, unit):
        return factors.solve_triangular(a, b, lower, trans, unit)

    def expm(xp, a):
        return factors.expm(xp, a)

    def sqrtm(xp, a):
        return factors.sqrtm(xp, a)

    def logm(xp, a):
        return factors.logm(xp, a)

    def lu(xp, a):
        return factors.lu(a)

    def eig(xp, a):
        return factors.eig(a)

    def cond(xp, pred, true, false, arrays):
        if not isinstance(pred, Tracer):  # known: nothing is compiled
            return super().cond(pred, true, false, arrays)
        return explained(xp, jax.lax.cond)(pred, true, false, *arrays)

    def while_loop(xp, goes_on, body, arrays):
        loop = explained(xp, jax.lax.while_loop)
        return loop(lambda a: goes_on(*a), lambda a: body(*a), arrays)

    def fori_loop(xp, lower, upper, body, arrays):
        loop = explained(xp, jax.lax.fori_loop)
        return loop(lower, upper, lambda i, a: body(i, *a), arrays)

    def scan(xp, step, carry, xs, n, reverse=False):
        return explained(xp, jax.lax.scan)(step, carry, xs, n, reverse)

    def index_get(xp, x, index):
        return indexing.get(x, index)

    def index_update(xp, x, index, value, how):
        return indexing.update(x, index, value, how)

    def window(xp, x, start, length, axis):
        return indexing.window(xp, x, start, length, axis)

    def put_window(xp, x, part, start, axis):
        return indexing.put_window(xp, x, part, start, axis)

    def distance(xp, start, stop):
        return indexing.distance(start, stop)

    def is_float(xp, dtype):
        return jnp.issubdtype(dtype, jnp.inexact)

    def conv(xp, x, w, bias, plan):
        return convolution.conv(x, w, bias, plan)

    def narrow(xp, name):
        return {"float16": jnp.float16, "bfloat16": jnp.bfloat16}.get(name)


# Parts of errors about arrays as indices, which have no class of their own.
WORDS = ("can be converted to a scalar index", "Indexer must have integer or boolean type")
ENDLESS = (
    "while_loop: the gradient of a loop in JAX needed a number of steps known beforehand; use "
    "iso.fori_loop with Python numbers as bounds, or iso.scan"
)


def _is_of_a_sequence(error: BaseException) -> bool:
    """Whether NumPy appended its own text about a sequence to JAX's message: `a[i] = x`."""
    cause = error.__cause__
    return isinstance(error, ValueError) and isinstance(cause, jax.errors.ConcretizationTypeError)


WIDE = (np.dtype(np.float64), np.dtype(np.complex128))  # JAX would make narrower arrays


def _has_64_bits() -> bool:
    return canonicalize_dtype(np.int64) == np.int64


@partial(jax.jit, static_argnums=3)
def _rows(x: jax.Array, order: jax.Array | None, begin: int, size: int) -> jax.Array:
    """Rows as one program: eager operations cost more than a small training step."""
    if order is None:
        return jax.lax.dynamic_slice_in_dim(x, begin, size)
    places = jax.lax.dynamic_slice_in_dim(order, begin, size)
    return jnp.take(x, places, axis=0, mode="clip")


def _narrowed(x: np.ndarray, dtype: Any) -> np.ndarray:
    """The values in the narrower dtype that JAX has for them, if they fit."""
    with np.errstate(over="ignore", invalid="ignore"):
        y = x.astype(dtype)
    fits = y == x if x.dtype.kind in "iu" else np.isfinite(y) | ~np.isfinite(x)
    if not fits.all():
        raise OverflowError(
            f"JAX has no {x.dtype} here, and {x[~fits].flat[0]} does not fit into {y.dtype}; turn "
            'on 64-bit types with jax.config.update("jax_enable_x64", True)'
        )
    return y


def _is_float0(g: Any) -> bool:
    return getattr(g, "dtype", None) == float0


def _conj(xs: Any) -> tuple:
    return tuple(x if x is None or not jnp.iscomplexobj(x) else jnp.conj(x) for x in xs)


def _register(cls: Any) -> None:
    def take(x: Any) -> tuple:
        parts, rest, _ = cls.take_whole(x)
        return tuple(parts), rest

    jax.tree_util.register_pytree_node(cls, take, cls.put_whole)


backend = JAX(names, jnp, linalg=[linalg, names, jnp.linalg], fft=[jnp.fft])
tree.register_nodes(_register)
