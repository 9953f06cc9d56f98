"""The sample that `make test` runs, and the parts of a whole run."""

import pytest
import sampling

# Tests of every length, some functions with many cases, some with one.
TIMES = {
    f"tests/test_{i % 7}.py::test_{i % 50}[{i}]": 0.001 * 1.02**i for i in range(500)
} | {f"tests/test_alone.py::test_{i}": 0.1 * i for i in range(60)}  # fmt: skip


def function_of(name):
    return name.partition("[")[0]


@pytest.mark.parametrize("first", [0, 7, 738_000])
def test_thirty_seeds_in_a_row_draw_every_test(first):
    missing = set(TIMES)
    for seed in range(first, first + sampling.ROUNDS):
        missing -= sampling.drawn(TIMES, seed, seconds=TIMES)
    assert missing == set()


def test_every_seed_draws_a_case_of_every_function_and_all_that_is_short_or_whole():
    short = {name for name, seconds in TIMES.items() if seconds <= sampling.ALLOWANCE}
    whole = {name for name in TIMES if name.startswith("tests/test_3.py")}
    for seed in range(100):
        chosen = sampling.drawn(TIMES, seed, whole, TIMES)
        assert {function_of(name) for name in chosen} == {function_of(name) for name in TIMES}
        assert short | whole <= chosen


def test_a_test_is_drawn_less_often_the_longer_it_takes():
    many = {f"tests/test_many.py::test_it[{i}]": 0.15 for i in range(2000)}
    chosen = sampling.drawn(many, 5, seconds=many)
    rounds = sampling.period(0.15)
    assert 10 <= rounds <= 20
    assert len(many) / rounds * 0.8 < len(chosen) < len(many) / rounds * 1.2
    assert sampling.drawn(many, 6, seconds=many).isdisjoint(chosen)


def test_a_new_test_always_runs():
    many = [f"tests/test_new.py::test_it[{i}]" for i in range(100)]
    assert sampling.drawn(many, 3, seconds={}) == set(many)


def test_no_case_of_a_function_is_drawn_more_often_than_one_that_takes_less():
    pair = {"tests/test_it.py::test_it[long]": 60.0, "tests/test_it.py::test_it[short]": 0.6}
    counts = dict.fromkeys(pair, 0)
    for seed in range(300):
        for name in sampling.drawn(pair, seed, seconds=pair):
            counts[name] += 1
    long, short = counts.values()
    assert 10 <= long < short / 4


@pytest.mark.parametrize("parts", [1, 2, 6])
def test_parts_hold_every_test_once_and_take_the_same_time(parts):
    names = list(TIMES)
    shares = [sampling.part_of(names, i + 1, parts, TIMES) for i in range(parts)]
    assert sorted(name for share in shares for name in share) == sorted(names)
    longest = max(TIMES.values())
    for share in shares:
        took = sum(TIMES[name] for name in share)
        assert abs(took - sum(TIMES.values()) / parts) <= longest


@pytest.mark.parametrize("text", ["0/6", "7/6", "2", "a/b", "-1/2", "2/0", ""])
def test_a_part_that_there_is_not_is_refused(text):
    with pytest.raises(ValueError, match=f"needed one of some parts, like 2/6, got '{text}'"):
        sampling.part_and_parts(text)


@pytest.mark.parametrize("parts", [1, 3])
def test_backends_and_parts_together_are_all_shares_of_a_run(parts):
    groups = [(backend, f"{i + 1}/{parts}") for backend in sampling.GROUPS for i in range(parts)]
    shares = [sampling.share_of(*group) for group in groups]
    assert shares == [f"{i + 1}/{5 * parts}" for i in range(5 * parts)]
    assert sampling.share_of(None, None) == ""
    assert sampling.share_of(None, "2/6") == "2/6"


def test_a_long_test_says_why(request):
    """Recorded times, not a clock: the file is the same on every machine."""
    long = {name for name, seconds in sampling.recorded().items() if seconds > sampling.SHORT}
    quick = [item for item in request.session.items if not item.get_closest_marker("slow")]
    whole = {item.nodeid for item in quick if item.get_closest_marker("whole")}
    chosen = sampling.drawn([item.nodeid for item in quick], 0, whole) & long
    silent = {
        function_of(item.nodeid)
        for item in quick
        if item.nodeid in chosen and not item.get_closest_marker("takes")
    }
    assert sorted(silent) == []


def test_recorded_times_are_of_tests_that_there_are():
    gone = {function_of(name) for name in sampling.recorded() if not sampling.is_there(name)}
    assert sorted(gone) == [], "run make times"
