"""What keeps the memory of a test process small."""

import memory
import pytest


def test_what_frameworks_keep_can_be_dropped(backend, xp):
    x = xp.asarray([1.0, 2.0])
    before = xp.sin(x) * 2
    memory.drop()
    assert bool(xp.all(xp.sin(x) * 2 == before))


@pytest.mark.parametrize("held", [memory.LIMIT - 1, memory.LIMIT + 1])
def test_it_is_dropped_when_much_is_held(held, monkeypatch):
    drops = []
    monkeypatch.setattr(memory, "drop", lambda: drops.append(1))
    monkeypatch.setattr(memory, "resident", lambda: held)
    keeper = memory.Keeper()
    keeper.look()
    keeper.look()
    assert len(drops) == (held > memory.LIMIT)  # not again before more has come


def test_the_memory_of_this_process_is_known():
    assert memory.resident() > 10
