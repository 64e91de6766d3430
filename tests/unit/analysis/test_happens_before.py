"""Clocks themselves; what they are for is tested rule by rule in test_conflicts.py."""

from labkit.analysis.happens_before import HOST, HOST_AGENT, HappensBefore
from tests.unit.analysis.programs import Program, node


def walk(program: Program) -> HappensBefore:
    order = HappensBefore(program.trace)
    for span in program.spans:
        if span.kind in ("kernel", "copy", "graph"):
            order.operation(span)
            order.after_operation(span)
        else:
            order.call(span)
    return order


def knows(program: Program, agent: str) -> int:
    """How many operations of stream s the host knows to be over."""
    order = walk(program)
    return order.host[order.agents[agent]]


def test_agents_are_the_host_and_every_stream():
    order = walk(Program(streams={"quiet": {}}).kernel("a", "s").record("e", "t").ssync("s", "u"))
    assert order.agents == {HOST: HOST_AGENT, "quiet": 1, "s": 2, "t": 3}


def test_each_operation_counts_one_on_its_stream():
    program = Program().kernel("a", "s").kernel("b", "s")
    order = HappensBefore(program.trace)
    epochs = []
    for span in program.spans:
        agent, clock = order.operation(span)
        epochs.append(clock[agent])
    assert epochs == [1, 2]


def test_markers_count_nothing():
    assert knows(Program().kernel("a", "s").record("e", "s").wait("s", "e").ssync("s"), "s") == 1


def test_the_host_learns_by_waiting_and_never_by_submitting():
    assert knows(Program().kernel("a", "s").kernel("b", "s"), "s") == 0
    assert knows(Program().kernel("a", "s").record("e", "s").kernel("b", "s").esync("e"), "s") == 1
    assert knows(Program().kernel("a", "s").kernel("b", "s").ssync("s"), "s") == 2
    assert knows(Program().kernel("a", "s", blocking=True).kernel("b", "s"), "s") == 1


def test_a_record_keeps_the_clock_of_its_time():
    program = Program().kernel("a", "s").record("e", "s").kernel("b", "s").wait("t", "e").kernel("c", "t").ssync("t")
    assert knows(program, "s") == 1


def test_a_wait_for_a_record_before_the_trace_orders_nothing():
    """A part of a trace: the wait's record is not in it, and so nothing that it covered."""
    program = Program().kernel("a", "s")
    program.add("wait", "wait e", stream="t", event="e", record=3)
    assert knows(program.ssync("t"), "s") == 0


def test_a_replay_knows_the_replay_before_it_wherever_that_ran():
    program = Program().kernel("a", "s").replay("g", "s", node("n")).replay("g", "t").ssync("t")
    assert knows(program, "s") == 2


def test_host_accesses_are_numbered():
    order = walk(Program())
    assert [order.host_access(), order.host_access()] == [1, 2]
