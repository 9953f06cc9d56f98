"""At every edge of every function, the four backends give the same value, the same gradient, or the
same kind of error.

The expected value is NumPy's, or a limit that the case states. The expected gradient is that of
finite differences where the function is smooth, or the one the case states; elsewhere it is that of
NumPy's tape, so that the four agree. The ledger lists what a framework cannot do or is free to
choose, and what is not promised because it depends on the processor (docs/numerics.md, "Edges").
"""

from fnmatch import fnmatch
from functools import cache

import numpy as np
import pytest
from edge_differences import smooth_gradients
from edge_facts import HEAD, PAGE
from edge_ledger import LEDGER, ON_GPU, Entry, is_zero, zeros
from edge_running import (
    CASES,
    ERRORS,
    difference,
    made,
    outcome,
    reference,
    shown,
    shows_loss,
    without,
)

import isomorph as iso
from isomorph.backends import vocabulary

BACKENDS = ("numpy", "jax", "tensorflow", "torch")
NAMES = list(dict.fromkeys(case.name for case in CASES))

# Names without edge cases, with the reason.
WITHOUT = {
    **dict.fromkeys(vocabulary.DTYPES, "a dtype"),
    **dict.fromkeys(vocabulary.CONSTANTS, "a constant"),
    **dict.fromkeys(vocabulary.INSPECTION, "answers about the namespace"),
    **dict.fromkeys(
        ("can_cast", "finfo", "iinfo", "isdtype", "result_type"), "answers about dtypes"
    ),
    **dict.fromkeys(
        (
            f"iso.{name}"
            for name in iso.__all__
            if "conv" in name and name not in ("conv2d", "convert", "convolve")
        ),
        "same code as conv2d: tests/layers/test_conv_*.py",
    ),
    "iso.grouped_query_attention": "scaled_dot_product_attention of fewer heads",
    "iso.multi_head_attention": "products around scaled_dot_product_attention",
    "iso.dropout": "keeps or drops by a key: tests/layers/test_layers.py",
}


def named(name):
    """The function that a name of the table stands for on a backend."""
    return lambda xp: getattr(iso, name[4:]) if name.startswith("iso.") else _walk(xp, name)


def _walk(xp, name):
    for word in name.split("."):
        xp = getattr(xp, word)
    return xp


def grid():
    for backend in BACKENDS:
        for dtype in ("float64", "float32"):
            for name in NAMES:
                yield pytest.param(backend, name, dtype, id=f"{backend}-{name}-{dtype}")


@pytest.mark.takes("XLA compiles it")
@pytest.mark.parametrize(("backend", "name", "dtype"), [*grid()], indirect=["backend"])
def test_the_four_agree(backend, name, dtype, request):
    on_gpu = request.config.getoption("--device")
    ledger = [*LEDGER, *ON_GPU] if on_gpu else LEDGER
    known = [
        entry
        for entry in ledger
        if backend in entry.backends.split()
        and name in entry.names.split()
        and dtype in entry.dtypes.split()
    ]
    problems, met = [], set()
    for number, case in enumerate(CASES):
        if case.name != name or (on_gpu and case.raises == "index"):
            continue  # an index on a GPU is not read: JAX gives NaN, torch ends the CUDA context
        expected, got = reference(number, dtype), outcome(backend, number, dtype)
        for what in ("value", "recorded", "grad", "twice"):
            apart = difference(case, what, expected, got, dtype)
            if apart is None:
                continue
            listed = [
                i
                for i, entry in enumerate(known)
                if fnmatch(case.edge, entry.edge)
                and entry.what == ("value" if what == "recorded" else what)
            ]
            left = apart
            for i in listed:
                found = getattr(got, what)
                left, hit = without(left, known[i], made(number, dtype), expected.value, found)
                met |= {i} if hit else set()
            if left is not None:
                problems.append(told(case, what, left, expected, got))
    gone = [
        f"no longer differs: {entry}"
        for i, entry in enumerate(known)
        if i not in met and not entry.free and not (on_gpu and entry in LEDGER)
    ]
    assert problems + gone == [], "\n".join(problems + gone)


def told(case, what, apart, expected, got):
    wanted, found = getattr(expected, what), getattr(got, what)
    if case.raises:
        wanted = ERRORS[case.raises](case.raises)
    where = apart if isinstance(apart, str) else [np.argwhere(x)[:3].tolist() for x in apart]
    return (
        f"{case.name} [{case.edge}] {what}: needed {shown(wanted)}\n"
        f"    got {shown(found)}\n    at {where}"
    )


# Cases whose derivative NumPy's tape refuses.
NO_DERIVATIVE = {
    ("linalg.qr", "zero"),
    *(("linalg.slogdet", edge) for edge in ("zero", "singular")),
}


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_reference_raises_only_where_a_case_says_so(backend, dtype):
    raised = {
        (case.name, case.edge): (what, found)
        for number, case in enumerate(CASES)
        for what, found in zip(("value", "recorded", "grad", "twice"), reference(number, dtype))
        if isinstance(found, Exception) and not case.raises and not case.lost
    }
    print({key: shown(found) for key, (_, found) in raised.items()})
    assert {key for key, (what, _) in raised.items() if what == "value"} == set()
    assert set(raised) == NO_DERIVATIVE


@cache
def compared(name):
    """How many of NumPy's derivatives were compared with differences, and the mismatches."""
    numbers = [i for i, case in enumerate(CASES) if case.name == name and not case.raises]
    found = [smooth_gradients(i) for i in numbers]
    return sum(count for count, _ in found), [wrong for _, wrongs in found for wrong in wrongs]


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_the_reference_are_those_of_differences(backend, name):
    _, wrong = compared(name)
    assert wrong == []


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_most_of_the_reference_has_differences(backend, capsys):
    counts = {name: compared(name)[0] for name in NAMES}
    with capsys.disabled():
        some = sum(n > 0 for n in counts.values())
        print(f"\nedges: {sum(counts.values())} derivatives of {some} functions by differences")
    assert sum(counts.values()) > 2500


def test_every_name_was_drawn(backend, xp, capsys):
    layers = [
        name
        for name in iso.__all__
        if getattr(getattr(iso, name), "__module__", "").startswith("isomorph.layers")
    ]
    wanted = {
        *vocabulary.VOCABULARY,
        *(f"linalg.{name}" for name in vocabulary.LINALG),
        *(f"fft.{name}" for name in vocabulary.FFT),
        *(f"iso.{name}" for name in layers),
    }
    with capsys.disabled():
        print(f"\nedges on {backend}: {len(CASES)} cases of {len(NAMES)} of {len(wanted)} names")
    assert wanted - set(NAMES) - set(WITHOUT) == set(), "names without an edge case"
    assert {*NAMES, *WITHOUT} - wanted == set(), "unknown names"
    assert set(NAMES) & set(WITHOUT) == set(), "excluded, but has a case"
    assert all(callable(named(name)(xp)) for name in NAMES)


def test_every_entry_of_the_ledger_names_a_case():
    for entry in (*LEDGER, *ON_GPU):
        assert set(entry.backends.split()) <= set(BACKENDS)
        for name in entry.names.split():
            edges = [case.edge for case in CASES if case.name == name]
            assert any(fnmatch(edge, entry.edge) for edge in edges), (name, entry.edge)


def test_a_free_entry_excuses_only_what_holds():
    entry = Entry("jax", "sign", "*", "value", "a reason", zeros, free=True, holds=is_zero)
    wanted, found = [np.array([0.0, 0.0, 1.0])], [np.array([-0.0, 5.0, 2.0])]
    apart = [np.array([True, True, True])]
    (left,), met = without(apart, entry, wanted, wanted, found)
    assert met
    assert left.tolist() == [False, True, True]


def test_finite_numbers_of_a_matrix_that_is_not_finite_are_seen():
    (case,) = (c for c in CASES if (c.name, c.edge) == ("linalg.eigh", "not finite"))
    lost = np.array([[np.nan, 1.0], [2.0, np.inf]])
    assert shows_loss(case, [lost])
    assert not shows_loss(case, [lost[:, :1]])
    assert not shows_loss(case, [lost, np.ones((2, 2))])
    assert not shows_loss(case, ValueError())
    assert shows_loss(case, np.linalg.LinAlgError())


def test_the_page_of_facts_has_every_free_entry():
    page = PAGE.read_text("utf-8")
    assert page.startswith(HEAD)
    missing = {entry.reason for entry in LEDGER if entry.free and f"| {entry.reason} |" not in page}
    assert missing == set(), "run `python tests/backends/edge_facts.py`"
