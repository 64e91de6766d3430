from labkit.analysis.redundant import Wait, redundant_waits, wait_name, without
from tests.unit.analysis.programs import Program


def two_ways() -> Program:
    """The host waits for the download, and for the stream: one of the two is enough."""
    return Program().d2h("down", "s", "x", "h").record("d2h_done[A]", "s").esync("d2h_done[A]").ssync("s").read("h")


def test_a_needed_wait_is_not_redundant():
    program = Program().kernel("a", "s1", w="x").record("e", "s1").wait("s2", "e").kernel("b", "s2", r="x")
    assert redundant_waits(program.trace) == ()


def test_a_wait_that_orders_nothing_new_is():
    program = Program().kernel("a", "s1", w="x").record("e", "s1").wait("s2", "e").kernel("b", "s2", r="y")
    assert redundant_waits(program.trace) == (Wait("s2_waits_e", 1),)


def test_two_waits_that_replace_each_other_say_so():
    assert redundant_waits(two_ways().trace) == (
        Wait("host_waits_d2h", 1, ("host_waits_s",)),
        Wait("host_waits_s", 1, ("host_waits_d2h",)),
    )


def test_the_waits_of_all_slots_are_one():
    program = Program()
    for slot in "ABA":
        program.kernel("a", "s1", w=f"x[{slot}]").record(f"e[{slot}]", "s1").wait("s2", f"e[{slot}]")
    assert redundant_waits(program.trace) == (Wait("s2_waits_e", 3),)


def test_a_trace_with_races_has_no_redundant_waits():
    program = Program().record("e", "s1").wait("s2", "e").kernel("a", "s1", w="x").kernel("b", "s2", r="x")
    assert redundant_waits(program.trace) == ()


def test_names():
    program = Program().record("e", "s").wait("t", "e").esync("e").query("e", True).query("e", False).ssync("s")
    names = [wait_name(span) for span in program.ssync("s", "t").read("h").spans]
    assert names == [None, "t_waits_e", "host_waits_e", "host_waits_e", None, "host_waits_s", "host_waits_device", None]


def test_without_takes_out_the_named_waits_only():
    kept = without(two_ways().trace, ["host_waits_s"])
    assert [span.kind for span in kept.spans] == ["copy", "record", "synchronize", "host_read"]
