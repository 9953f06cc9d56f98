"""Edge cases of convolutions: NaN and infinities, complex numbers, single elements, memory use."""

import tracemalloc

import numpy as np
import pytest
from frameworks import functional, proxy_tensor, torch

import isomorph as iso
from isomorph.backends.numpy.convolution import PIECE
from isomorph.meanings.conv_plan import PLAN_OF
from oracles import numpy_of

from .conv_oracles import Case, check, drawn, forward, same, transposed


@pytest.mark.host_only("on a GPU cuDNN multiplies a NaN with zeros of padding", "jax")
def test_what_is_not_a_number_shows(backend, xp):
    """A NaN and an infinity only reach outputs whose window contains them: zeros of padding,
    dilation or other groups are never multiplied with them.
    """
    for options, groups in (({}, 1), ({"dilations": 2}, 2), ({"x_dilations": 2}, 1)):
        x, w = drawn(0, (2, 7, 6, 4), (3, 2, 4 // groups, 4))
        x[0, 2, 3, 1], x[1, 5, 0, 2] = np.nan, np.inf
        dilations = (options.get("dilations", 1),) * 2
        x_dilations = (options.get("x_dilations", 1),) * 2
        wide = tuple((n - 1) * d + 1 for n, d in zip((7, 6), x_dilations))
        for strides in ((1, 1), (2, 2)):
            pads = same(wide, (3, 2), strides, dilations)
            case = Case((7, 6), (3, 2), strides, pads, x_dilations, dilations, groups)
            with np.errstate(invalid="ignore"):
                wanted = case.conv(x, w)
                y = numpy_of(
                    iso.conv_general_dilated(
                        xp.asarray(x),
                        xp.asarray(w),
                        strides,
                        "SAME",
                        feature_group_count=groups,
                        **options,
                    )
                )
            assert np.isfinite(wanted).any()
            assert strides != (1, 1) or np.isnan(wanted).any()
            np.testing.assert_allclose(y, wanted, rtol=1e-10, atol=1e-10)


def test_gradients_of_a_convolution_alone_in_its_filters(backend, xp):
    """Second derivative from the filters' gradient back to x, which differentiates `back_w`."""
    x, w, r = drawn(1, (2, 5, 4, 2), (2, 3, 2, 3), (2, 3, 2, 3))
    case = Case((5, 4), (2, 3), (2, 1), ((1, 0), (1, 1)), (1, 1), (1, 1))
    c = drawn(2, (2, *case.size, 3))[0]
    # the loss is ½ Σ c·y²: its gradient for w, along r, differentiated for x and w
    y, through = case.conv(x, w), case.conv(x, r)
    wanted = [
        case.back_x(c * through, w) + case.back_x(c * y, r),
        case.back_w(x, c * through),
    ]
    there = [xp.asarray(a) for a in (c, r)]

    def along(x, w):
        loss = lambda w: xp.sum(there[0] * iso.conv2d(x, w, (2, 1), [(1, 0), (1, 1)]) ** 2) / 2
        return xp.sum(there[1] * iso.grad(loss)(w))

    both = iso.grad(along, (0, 1))
    both = iso.jit(both) if backend == "jax" else both
    for a, b in zip(both(xp.asarray(x), xp.asarray(w)), wanted, strict=True):
        np.testing.assert_allclose(numpy_of(a), b, rtol=0, atol=1e-10)


def test_complex_convolutions(backend, xp):
    parts = drawn(3, (1, 6, 2), (1, 6, 2), (3, 2, 3), (3, 2, 3))
    x, w = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
    case = Case((6,), (3,), (2,), ((1, 1),), (1,), (1,))
    real = lambda f, a, b: f(a.real, b.real) - f(a.imag, b.imag)
    imag = lambda f, a, b: f(a.real, b.imag) + f(a.imag, b.real)
    wanted = real(case.conv, x, w) + 1j * imag(case.conv, x, w)
    call = lambda x, w: iso.conv1d(x, w, 2, 1)
    given = xp.asarray(x), xp.asarray(w)
    np.testing.assert_allclose(numpy_of(call(*given)), wanted, rtol=1e-10)
    # the real part of the result, as a function of real and imaginary parts
    unit = xp.asarray(1j, dtype=xp.complex128)
    join = lambda a, b: xp.astype(a, unit.dtype) + xp.astype(b, unit.dtype) * unit
    loss = lambda a, b, c, d: xp.sum(xp.real(call(join(a, b), join(c, d))))
    found = iso.grad(loss, (0, 1, 2, 3))(*(xp.asarray(p) for p in parts))
    u = np.ones(wanted.shape)
    expected = [case.back_x(u, w.real), -case.back_x(u, w.imag)]
    expected += [case.back_w(x.real, u), -case.back_w(x.imag, u)]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(numpy_of(a), b, rtol=1e-10, atol=1e-12)


def test_one_element(backend):
    """Filters larger than x, one position, one channel."""
    x, w = drawn(4, (1, 1, 1, 1), (3, 2, 1, 1))
    case = Case((1, 1), (3, 2), (1, 1), ((1, 1), (0, 1)), (1, 1), (1, 1))
    check(backend, lambda x, w, b: iso.conv2d(x, w, 1, "SAME", bias=b), forward(case), x, w)
    case = Case((3, 2), (3, 2), (2, 2), ((0, 0), (0, 0)), (1, 1), (1, 1))
    call = lambda x, w, b: iso.conv2d_transpose(x, w, 2, "VALID", bias=b)
    check(backend, call, transposed(case), x, w)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_large_samples_are_convolved_in_pieces(backend):
    """One sample whose windows need several pieces, by rows and by samples."""
    x, w = drawn(5, (3, 61, 40, 8), (3, 3, 8, 2))
    assert 61 * 40 * 9 * 8 * x.itemsize * 3 > 2 * PIECE
    assert 61 * 40 * 9 * 8 * x.itemsize < PIECE
    check_pieces(x, w)
    x, w = drawn(6, (2, 131, 60, 8), (3, 3, 8, 2))
    assert 131 * 60 * 9 * 8 * x.itemsize > 2 * PIECE
    check_pieces(x, w)


def check_pieces(x, w):
    """Compare with a sum over one sample and one filter position at a time."""
    y = iso.conv2d(x, w, 1, "SAME")
    g = drawn(7, y.shape)[0]
    dx, dw = iso.vjp(lambda x, w: iso.conv2d(x, w, 1, "SAME"), x, w)[1](g)
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    wanted, back, to_w = np.zeros_like(y), np.zeros_like(wide), np.zeros_like(w)
    height, width = x.shape[1:3]
    for i, j in np.ndindex(3, 3):
        part = wide[:, i : i + height, j : j + width]
        wanted += part @ w[i, j]
        back[:, i : i + height, j : j + width] += g @ w[i, j].T
        to_w[i, j] = np.einsum("nhwa,nhwb->ab", part, g)
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-10)
    np.testing.assert_allclose(dx, back[:, 1:-1, 1:-1], rtol=0, atol=1e-10)
    np.testing.assert_allclose(dw, to_w, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("kind", ["dense", "grouped", "first", "transposed"])
def test_memory_of_a_large_batch(backend, kind):
    """Besides inputs and outputs: one padded copy of x, windows of about `PIECE`, and little else.
    A matrix of all windows of the batch would be 9 times x.
    """
    x, w = (a.astype(np.float32) for a in drawn(8, (64, 40, 40, 16), (3, 3, 16, 16)))
    options = {}
    call = iso.conv2d
    if kind == "grouped":
        w, call, options = w[:, :, :4], iso.conv_general_dilated, {"feature_group_count": 4}
    elif kind == "first":
        x, options = np.ascontiguousarray(np.moveaxis(x, -1, 1)), {"data_format": "NCHW"}
    elif kind == "transposed":
        call = iso.conv2d_transpose
    func = lambda x, w: call(x, w, 1, "SAME", **options)
    wide = 64 * 42 * 42 * 16 * x.itemsize
    assert 9 * x.nbytes > 2 * (wide + 2 * PIECE)

    def peak(run):
        tracemalloc.start()
        try:
            result = run()
            return tracemalloc.get_traced_memory()[1], result
        finally:
            tracemalloc.stop()

    func(x[:1], w)  # run once, so that imports and caches do not count
    used, y = peak(lambda: func(x, w))
    assert used < y.nbytes + wide + 2 * PIECE
    _, back = iso.vjp(func, x, w)
    used, (dx, dw) = peak(lambda: back(y))
    # both gradients: padded x for the filters' one, and the padded gradient of x
    assert used < dx.nbytes + dw.nbytes + y.nbytes + wide + 2 * PIECE
    assert dx.shape == x.shape
    assert dw.shape == w.shape


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
@pytest.mark.parametrize("conv", [iso.conv2d, iso.conv2d_transpose])
def test_sizes_that_are_symbols(backend, conv):
    """Such sizes have no hash and no value."""
    x, w = torch.ones((2, 9, 9, 4), dtype=torch.float64), torch.ones((3, 3, 4, 4)).double()
    func = lambda x, w: conv(x, w, 2, "SAME")
    program = proxy_tensor.make_fx(func, tracing_mode="symbolic")(x, w)
    x = torch.arange(2.0 * 9 * 9 * 4).reshape(2, 9, 9, 4).double()
    np.testing.assert_allclose(numpy_of(program(x, w)), numpy_of(func(x, w)), rtol=1e-12)


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
def test_filters_that_differ_in_their_shape_alone(backend):
    """A transposed convolution with negative padding is a convolution with filters turned around;
    how it runs is decided once for each shape of filters, and not by the first one.
    """
    draw = np.random.default_rng(0).normal
    for _ in range(2):
        for into, out in ((4, 4), (4, 1), (1, 4), (24, 24), (1, 1)):
            x, w = (
                torch.tensor(draw(size=(2, 6, 6, into))),
                torch.tensor(draw(size=(3, 3, into, out))),
            )
            y = iso.conv2d_transpose(x, w, 1, -1)
            first = functional.conv_transpose2d(x.permute(0, 3, 1, 2), w.permute(2, 3, 0, 1))
            wanted = functional.pad(first, (1, 1, 1, 1)).permute(0, 2, 3, 1)
            np.testing.assert_allclose(numpy_of(y), numpy_of(wanted), rtol=1e-11, atol=1e-11)
    how = ((1, 1), ((1, 1), (1, 1)), (1, 1), (1, 1), 1, False, False, (6, 6))
    one, other = (PLAN_OF(*how, (3, 3, 4, n)) for n in (4, 1))
    assert one.filters != other.filters
    assert PLAN_OF(*how, (3, 3, 4, 4)) is one
