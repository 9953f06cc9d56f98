"""Every case of `array_cases.py` on every backend: eager and compiled against its oracle, its
gradients against central differences, and mapped.
"""

import numpy as np
import pytest
from array_cases import CASES
from frameworks import ours

import isomorph as iso
from oracles import as_users_have_it, central_gradient, kind_of, name_of, numpy_of

FEW = ["interp", "segment_max", "at_drop_add", "nanmedian", "cumulative_max", "cdist_euclidean"]
SOME = [*FEW, *[name for name in CASES if name not in FEW][::3]]  # for a quick program
SMOOTH = {name: case for name, case in CASES.items() if case.places}


def listed(found):
    return found if isinstance(found, list) else [found]


def dtype_of(xp, name, sure):
    """NumPy's dtype, but floats from integers are of the framework's default dtype; the case of
    one_hot asks for float64.
    """
    whole = all(x.dtype.kind == "i" for x in CASES[name].arrays)
    if not whole or sure.dtype != np.float64 or name == "one_hot":
        return sure.dtype
    own = xp.__array_namespace_info__().default_dtypes()["real floating"]
    return np.dtype(str(getattr(own, "name", own)).rpartition(".")[2])


def check(name, xp, found, wanted):
    found, wanted = listed(found), listed(wanted)
    assert len(found) == len(wanted) >= 1
    for got, sure in zip(found, wanted):
        assert kind_of(got) == name_of(xp), name
        got, sure = numpy_of(got), np.asarray(sure)
        assert (got.shape, got.dtype) == (sure.shape, dtype_of(xp, name, sure)), name
        np.testing.assert_allclose(got, sure, rtol=1e-12, atol=1e-13, err_msg=name)


def weighted(xp, name, found):
    """The sum of all elements of one result, each with its own weight."""
    weights = np.sin(1.0 + np.arange(np.prod(np.shape(right(name)))))
    return xp.sum(xp.reshape(found, (-1,)) * xp.asarray(weights))


def values_of(name, arrays):
    return CASES[name].call(iso, *arrays)


def gradients_of(xp, name, arrays):
    run = lambda *arrays: weighted(xp, name, CASES[name].call(iso, *arrays))
    return iso.grad(run, CASES[name].places)(*arrays)


def right(name):
    return CASES[name].wanted(*CASES[name].arrays)


def inputs(xp, names):
    return {name: [xp.asarray(x) for x in CASES[name].arrays] for name in names}


def by_differences(name):
    case = CASES[name]
    found = []
    for place in case.places:

        def total(x, place=place):
            arrays = [*case.arrays[:place], x, *case.arrays[place + 1 :]]
            return float(weighted(iso.namespace(np.ones(1)), name, case.wanted(*arrays)))

        # a NaN among the arguments does not move, and must not reach a result
        found.append(central_gradient(total, case.arrays[place]))
        assert np.isfinite(found[-1]).all(), name
    return found


@pytest.mark.parametrize("name", CASES)
def test_values(backend, xp, name):
    check(name, xp, values_of(name, inputs(xp, [name])[name]), right(name))


@pytest.mark.takes("JAX compiles each operation")
@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(backend, xp, name):
    found = gradients_of(xp, name, inputs(xp, [name])[name])
    for got, wanted in zip(found, by_differences(name), strict=True):
        # the error of central differences is about 1e-9 times the third derivative
        np.testing.assert_allclose(numpy_of(got), wanted, rtol=1e-6, atol=1e-7)


PARTS = {" ".join(SOME[i : i + 5]): SOME[i : i + 5] for i in range(0, len(SOME), 5)}


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize(
    ("names", "smooth"),
    [
        *((names, [name for name in names if name in FEW]) for names in PARTS.values()),
        pytest.param([*CASES], [*CASES], marks=pytest.mark.slow),
    ],
    ids=[*PARTS, "all"],
)
@pytest.mark.parametrize("backend", ["jax", "tensorflow", "torch"], indirect=True)
def test_compiled(backend, xp, names, smooth, monkeypatch):
    """Values and gradients in one program. On torch its graph is run as it is: Inductor takes
    minutes for all of them, and gets fewer cases below.
    """
    if backend == "torch":
        monkeypatch.setattr(ours("torch.private"), "inductor_compile", lambda graph, *_: graph)
    smooth = [name for name in smooth if name in SMOOTH]

    def every(inputs):
        values = {name: values_of(name, inputs[name]) for name in names}
        return values, {name: gradients_of(xp, name, inputs[name]) for name in smooth}

    values, gradients = as_users_have_it(backend, iso.jit(every))(inputs(xp, names))
    for name in names:
        check(name, xp, values[name], right(name))
    for name in smooth:
        for got, wanted in zip(gradients[name], by_differences(name), strict=True):
            np.testing.assert_allclose(numpy_of(got), wanted, rtol=1e-6, atol=1e-7, err_msg=name)


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("backend", ["torch"], indirect=True)
@pytest.mark.parametrize(
    "names",
    [FEW[:1], *(pytest.param([name], marks=pytest.mark.slow) for name in CASES)],
    ids=["few", *CASES],
)
def test_compiled_by_inductor(backend, xp, names):
    found = iso.jit(lambda inputs: {name: values_of(name, inputs[name]) for name in names})(
        inputs(xp, names)
    )
    for name in names:
        check(name, xp, found[name], right(name))


def test_mapped(backend, xp):
    """Two examples, of which the second has other numbers: the results are those of each."""

    def every(first, second):
        found = {}
        for name in SMOOTH:
            arrays = [
                xp.stack([x, y]) if i in SMOOTH[name].places else x
                for i, (x, y) in enumerate(zip(first[name], second[name]))
            ]
            axes = tuple(0 if i in SMOOTH[name].places else None for i in range(len(arrays)))
            found[name] = iso.vmap(lambda *a, name=name: values_of(name, a), axes)(*arrays)
        return found

    first = inputs(xp, SMOOTH)
    second = {
        name: [
            x * 0.9 + 0.001 if i in SMOOTH[name].places else x for i, x in enumerate(first[name])
        ]
        for name in SMOOTH
    }
    found = (iso.jit(every) if backend == "jax" else every)(first, second)
    for name in SMOOTH:
        for got, given in zip(numpy_of(found[name]), (first, second), strict=True):
            sure = SMOOTH[name].wanted(*(numpy_of(x) for x in given[name]))
            np.testing.assert_allclose(got, sure, rtol=1e-12, atol=1e-13, err_msg=name)
