"""The block pool: free, held, used, and nothing else."""

import pytest

from labkit.engine.blocks import BlockPool
from labkit.errors import LabkitError


def counts(pool):
    assert pool.free + pool.held + pool.used == pool.num_blocks
    return pool.free, pool.held, pool.used


def test_allocate_until_there_is_none():
    pool = BlockPool(3)
    assert sorted(pool.allocate() for _ in range(3)) == [0, 1, 2]
    assert counts(pool) == (0, 0, 3)
    with pytest.raises(IndexError):
        pool.allocate()


def test_released_at_once_without_a_step_in_flight():
    pool = BlockPool(3)
    block = pool.allocate()
    pool.release([block], None)
    assert counts(pool) == (3, 0, 0)


def test_held_until_its_step_has_ended():
    pool = BlockPool(4)
    first, second, third = (pool.allocate() for _ in range(3))
    pool.release([first], after_step=5)
    pool.release([second, third], after_step=6)
    assert counts(pool) == (1, 3, 0)
    pool.step_ended(4)
    assert counts(pool) == (1, 3, 0)
    pool.step_ended(5)
    assert counts(pool) == (2, 2, 0)
    assert {pool.allocate(), pool.allocate()} == {3, first}
    pool.step_ended(6)
    assert counts(pool) == (2, 0, 2)


def test_a_later_step_frees_what_an_earlier_one_held():
    pool = BlockPool(2)
    pool.release([pool.allocate()], after_step=1)
    pool.step_ended(3)
    assert counts(pool) == (2, 0, 0)


@pytest.mark.parametrize("after_step", [None, 3])
def test_nothing_is_freed_twice(after_step):
    pool = BlockPool(3)
    mine, other = pool.allocate(), pool.allocate()
    pool.release([mine], after_step)
    with pytest.raises(LabkitError, match=rf"blocks \[{mine}\] are freed twice"):
        pool.release([mine, other], None)
    assert pool.used == 1, "a refused release changes nothing"


def test_reset():
    pool = BlockPool(3)
    pool.release([pool.allocate()], after_step=9)
    pool.allocate()
    pool.reset()
    assert counts(pool) == (3, 0, 0)
    assert sorted(pool.allocate() for _ in range(3)) == [0, 1, 2]
