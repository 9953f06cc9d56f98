"""Random programs that write into arrays: fifty of them, always the same."""

import pytest
import written_programs as w

import isomorph as iso


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
@pytest.mark.parametrize("plain", [False, True], ids=["isomorph.numpy", "numpy"])
@pytest.mark.parametrize("tens", range(5))
def test_programs_that_write_are_right_or_refused(backend, tens, plain):
    kinds = []
    for seed in range(10 * tens, 10 * tens + 10):
        lines = w.Program(seed, plain).lines
        kind, why = w.outcome(lines, plain)
        assert kind not in ("wrong", "broken"), f"{why}\n{w.text_of(lines)}"
        kinds.append(kind)
    assert kinds.count("right") == 10


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_a_wrong_program_is_found_and_shrunk(backend, monkeypatch):
    """Without views that see a write, programs are wrong, and the shortest of them has a view."""
    from isomorph.backends.numpy import tape

    monkeypatch.setattr(tape, "shares", lambda y, x: False)
    lines = next(
        p.lines for seed in range(100) if w.outcome((p := w.Program(seed)).lines)[0] == "wrong"
    )
    fewer = w.shrunk(lines, "wrong")
    assert 2 <= len(fewer) <= 5
    assert w.outcome(fewer)[0] == "wrong"


@pytest.mark.parametrize("backend", ["numpy"], indirect=True)
def test_every_form_is_drawn(backend):
    text = "\n".join(w.Program(seed).text for seed in range(300))
    for form in ("np.zeros(", "np.empty(", "np.put(", "np.copyto(", "np.place(", "np.putmask(",
                 "np.fill_diagonal(", "np.add.at(", ".fill(", ".sort()", "out=", ".flat[", ".T[0]",
                 ".reshape(-1)", "np.asarray(", " += ", " *= ", " -= ", " /= ", " **= ",
                 "for i in", "for row in", "thrice(", "[:-1]", "np.arange(6"):  # fmt: skip
        assert form in text, form
    assert iso.grad(lambda x: w.value(["x *= 2.0"], w.isomorph.numpy, x))(w.X).shape == w.X.shape
