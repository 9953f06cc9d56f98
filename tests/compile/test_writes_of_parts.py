"""A part of an array written into another part of it, between a gather and a scatter: compiled
programs give what NumPy gives. XLA on a CPU computes what is written while it writes, from elements
that it has overwritten (plain `jax.jit` of `v.at[1:].set(v[:-1])` after `v = x[order]`).
"""

import numpy as np
import pytest

import isomorph as iso
from oracles import numpy_of


def rows(x, first, last):
    return iso.at(x)[first:last].get()


def span(x, i, n):
    return iso.at(x)[iso.span(i, n)].get()


# name -> a function of an array v, which is written, and of a traced integer i = 2
WRITES = {
    "set": lambda xp, v, i: iso.at(v)[1:].set(rows(v, None, -1)),
    "set a few": lambda xp, v, i: iso.at(v)[2:9].set(rows(v, 0, 7)),
    "set upwards": lambda xp, v, i: iso.at(v)[:-1].set(rows(v, 1, None)),
    "set columns": lambda xp, v, i: iso.at(v)[..., 1:].set(v[..., :-1]),
    "set backwards": lambda xp, v, i: iso.at(v)[::-1].set(v),
    "set every second": lambda xp, v, i: iso.at(v)[2::2].set(iso.at(v)[:-2:2].get()),
    "set what is computed": lambda xp, v, i: iso.at(v)[1:].set(rows(v, None, -1) * 3 - 1),
    "add": lambda xp, v, i: iso.at(v)[1:].add(rows(v, None, -1)),
    "multiply": lambda xp, v, i: iso.at(v)[1:].multiply(rows(v, None, -1)),
    "max": lambda xp, v, i: iso.at(v)[1:].max(rows(v, None, -1)),
    "span": lambda xp, v, i: iso.at(v)[iso.span(i + 2, 7)].set(span(v, i, 7)),
    "add to a span": lambda xp, v, i: iso.at(v)[iso.span(i + 1, 7)].add(span(v, i, 7)),
    "one of a span": lambda xp, v, i: iso.at(v)[iso.span(i + 1, 1)].set(span(v, i, 1)),
    "one": lambda xp, v, i: iso.at(v)[i + 1].set(iso.at(v)[i].get()),
    "twice": lambda xp, v, i: iso.at(iso.at(v)[1:].set(rows(v, None, -1)))[2:9].set(rows(v, 0, 7)),
}
# name -> the write with something before or after it, of x, an order of its rows, and i
AROUND = {
    "gather": lambda xp, write, x, order, i: write(xp, xp.take(x, order, axis=0), i),
    "scatter": lambda xp, write, x, order, i: iso.segment_sum(write(xp, x, i), order, x.shape[0]),
    "scan": lambda xp, write, x, order, i: iso.scan(
        lambda c, _: (write(xp, xp.take(c, order, axis=0), i), 0), x, length=2
    )[0],
    "mapped": lambda xp, write, x, order, i: iso.vmap(
        lambda x: write(xp, xp.take(x, order, axis=0), i)
    )(xp.stack([x, x + x])),
}  # fmt: skip
SIZES = [((33,), "float64"), ((16, 8), "float64"), ((64, 19), "float32"), ((12, 3, 5), "int64")]


CASES = [
    pytest.param(backend, write, around, *size, id=f"{backend}-{write}-{around}-{size[0]}")
    for backend in ("jax", "tensorflow", "torch")
    for around in AROUND
    for size in SIZES
    for write in WRITES
    if backend != "torch" or (size is SIZES[0] and around == "gather")
]


@pytest.mark.takes("a compiler compiles a write and its gradient")
@pytest.mark.parametrize(
    ("backend", "write", "around", "shape", "dtype"), CASES, indirect=["backend"]
)
def test_a_part_written_into_the_same_array(backend, xp, write, around, shape, dtype):
    draw = np.random.default_rng(5)
    x = ((9 if dtype == "int64" else 1) * draw.normal(size=shape)).astype(dtype)
    order, i = draw.permutation(shape[0]), np.asarray(2)

    def program(xp, differentiated):
        whole = lambda x, order, i: AROUND[around](xp, WRITES[write], x, order, i)
        loss = lambda x, order, i: xp.sum(xp.sin(whole(x, order, i)) ** 2)
        return iso.grad(loss) if differentiated else whole

    for differentiated in (False, True) if "float" in dtype else (False,):
        sure = program(np, differentiated)(x, order, 2)
        arrays = iso.convert((x, order, i), backend)
        found = iso.jit(program(xp, differentiated))(*arrays)
        assert found.dtype == arrays[0].dtype
        near = (1e-4 if dtype == "float32" else 1e-11) * max(1.0, np.abs(sure).max())
        np.testing.assert_allclose(numpy_of(found), sure, rtol=0, atol=near)
