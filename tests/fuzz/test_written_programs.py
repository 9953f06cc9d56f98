"""Random programs that write into arrays: fifty of them, always the same."""

import numpy
import pytest
import written_programs as w

import isomorph as iso


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("plain", [False, True], ids=["isomorph.numpy", "numpy"])
@pytest.mark.parametrize("tens", range(5))
def test_programs_that_write_are_right_or_refused(backend, tens, plain):
    kinds = []
    for seed in range(10 * tens, 10 * tens + 10):
        program = w.Program(seed, plain)
        transform = w.transform_of(program)
        kind, why = w.outcome(program.lines, plain, transform)
        assert kind not in ("wrong", "broken"), f"{transform.__name__}: {why}\n{program.text}"
        kinds.append(kind)
    assert kinds.count("right") >= 9
    assert kinds.count("refused") == 0


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_a_wrong_program_is_found_and_shrunk(backend, monkeypatch):
    """Without views that see a write, programs are wrong, and the shortest of them has a view."""
    from isomorph.backends.numpy import tape

    monkeypatch.setattr(tape, "shares", lambda y, x: False)
    lines = next(
        p.lines for seed in range(100) if w.outcome((p := w.Program(seed)).lines)[0] == "wrong"
    )
    fewer = w.shrunk(lines, "wrong")
    assert 1 <= len(fewer) <= 5
    assert w.outcome(fewer)[0] == "wrong"


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("transform", w.TRANSFORMS, ids=lambda t: t.__name__)
def test_a_transform_of_another_program_is_wrong(backend, transform):
    """Each transform compares what it computes: with a constant added where NumPy has none, or
    another slope, the outcome is not right.
    """
    lines, other = ["y = x * 1.0", "y *= y"], ["y = x * 1.0", "y *= y * x"]
    assert w.outcome(lines, transform=transform) == ("right", "")
    f, plain = lambda x: w.value(lines, w.isomorph.numpy, x), w.Plain(other)
    apart = [numpy.abs(a - b).max() > most for a, b, most in transform(f, plain)]
    assert all(apart)


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_every_form_is_drawn(backend):
    programs = [w.Program(seed) for seed in range(300)]
    assert {w.transform_of(p) for p in programs[:50]} == set(w.TRANSFORMS)
    text = "\n".join(p.text for p in programs)
    for form in ("np.zeros(", "np.empty(", "np.put(", "np.copyto(", "np.place(", "np.putmask(",
                 "np.fill_diagonal(", "np.add.at(", ".fill(", ".sort()", "out=", ".flat[", ".T[0]",
                 ".reshape(-1)", "np.asarray(", " += ", " *= ", " -= ", " /= ", " **= ",
                 "for i in", "for row in", "thrice(", "[:-1]", "np.arange(6",
                 "np.zeros(())", "complex)", ", None, v"):  # fmt: skip
        assert form in text, form
    assert iso.grad(lambda x: w.value(["x *= 2.0"], w.isomorph.numpy, x))(w.X).shape == w.X.shape
