"""Allocations of the virtual GPU, measured from outside."""

from labkit.device.calibrate.allocations import measure_allocations, timed


def test_misses_and_giving_back_cost_what_the_profile_says(rig, truth):
    names = ("malloc_ns", "free_ns", "pinned_malloc_ns")
    assert measure_allocations(rig, repeats=3) == {name: getattr(truth, name) for name in names}


def test_nothing_is_kept(rig):
    measure_allocations(rig, repeats=2)
    assert rig.device.allocator.in_use == rig.device.allocator.reserved == 0


def test_a_call_and_its_time(rig):
    assert timed(rig, lambda: rig.device.spend(5) or "done") == ("done", 5)
