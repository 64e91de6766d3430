from labkit.analysis.conflicts import ConflictKey, Side, find_conflicts
from labkit.analysis.inserting import Inserter, add_edge
from labkit.trace.events import Span, Touch, Trace
from tests.unit.analysis.programs import Program, node


def inserted(program: Program, event: str, *, recorded: bool = False) -> tuple[Trace, Inserter]:
    """The program with a pair for its first conflict."""
    conflict = find_conflicts(program.trace)[0]
    inserter = Inserter(program.trace, conflict.key, "x", event, recorded)
    return Trace(tuple(inserter), (), program.meta, program.graphs), inserter


def calls(trace: Trace) -> list[str]:
    return [_call(span) for span in trace.spans]


def _call(span: Span) -> str:
    if span.kind in ("record", "wait", "synchronize"):
        return f"{span.kind} {span.event} {span.record} {span.stream}".strip()
    return span.name


def test_a_record_behind_the_first_and_a_wait_before_the_second():
    trace, inserter = inserted(Program().kernel("a", "s1", w="x").kernel("b", "s2", r="x"), "e")
    assert calls(trace) == ["a", "record e 1 s1", "wait e 1 s2", "b"]
    assert list(inserter.before) == ["b"]


def test_the_host_synchronizes():
    trace, _ = inserted(Program().d2h("down", "s", "y", "x").read("x"), "e")
    assert calls(trace) == ["down", "record e 1 s", "synchronize e 1", "read x"]


def test_every_step_gets_its_pair_and_every_buffer_its_event():
    program = Program()
    for slot in "ABA":
        program.kernel("a", "s1", w=f"x[{slot}]").kernel("b", "s2", r=f"x[{slot}]")
    trace, _ = inserted(program, "e")
    assert [call for call in calls(trace) if call[0] in "rw"] == [
        *("record e[A] 1 s1", "wait e[A] 1 s2"),
        *("record e[B] 1 s1", "wait e[B] 1 s2"),
        *("record e[A] 2 s1", "wait e[A] 2 s2"),
    ]


def test_one_wait_is_enough_for_all_later_work_of_the_stream():
    program = Program().kernel("a", "s1", w="x").kernel("b", "s2", r="x").kernel("c", "s2", r="x")
    assert calls(inserted(program, "e")[0]) == ["a", "record e 1 s1", "wait e 1 s2", "b", "c"]


def test_a_third_stream_does_not_bring_the_wait_forward():
    program = (
        Program().kernel("a", "s1", w="x").wait_stream("s3", "s1").kernel("c", "s3", r="x").kernel("b", "s2", r="x")
    )
    assert calls(inserted(program, "e")[0])[-3:] == ["c", "wait e 1 s2", "b"]


def test_a_wait_for_a_read_is_put_before_a_write_only():
    program = Program().kernel("a", "s1", r="x").kernel("b", "s2", r="x").kernel("c", "s2", w="x")
    assert calls(inserted(program, "e")[0]) == ["a", "record e 1 s1", "b", "wait e 1 s2", "c"]


def test_an_event_that_is_recorded_there_is_waited_for_as_it_is():
    program = Program().kernel("a", "s1", w="x").record("e[A]", "s1").record("e[B]", "s1").kernel("b", "s2", r="x")
    trace, _ = inserted(program, "e", recorded=True)
    assert calls(trace) == ["a", "record e[A] 1 s1", "record e[B] 1 s1", "wait e[A] 1 s2", "b"]


def test_a_record_on_another_stream_or_too_early_is_not_waited_for():
    program = Program().record("e", "s1").kernel("a", "s1", w="x").record("e", "s3").kernel("b", "s2", r="x")
    assert calls(inserted(program, "e", recorded=True)[0]) == ["record e 1 s1", "a", "record e 2 s3", "b"]


def test_around_a_replay_when_the_access_is_a_node():
    program = Program().replay("g[A]", "s1", node("n", w="x")).kernel("b", "s2", r="x").replay("g[A]", "s1")
    assert calls(inserted(program, "e")[0])[:3] == ["g[A]", "record e 1 s1", "wait e 1 s2"]
    other_way = Program().kernel("b", "s2", r="x").replay("g[A]", "s1", node("n", w="x"))
    trace, inserter = inserted(other_way, "e")
    assert calls(trace) == ["b", "record e 1 s2", "wait e 1 s1", "g[A]"]
    assert list(inserter.before) == ["replay of g"]


def test_two_buffers_of_one_name_have_events_of_their_own():
    key = ConflictKey(Side("a", "s1", True), Side("b", "s2", False), "x")
    program = Program(memory={1: (1, 0), 2: (2, 0)})
    one, two = Touch("x", 0, 64, "device", 1), Touch("x", 0, 64, "device", 2)
    program.kernel("a", "s1", w=[one]).kernel("a", "s1", w=[two]).kernel("b", "s2", r=[one])
    trace = Trace(tuple(Inserter(program.trace, key, "x", "e", False)), (), program.meta)
    assert calls(trace) == ["a", "record e 1 s1", "a", "record e#1 1 s1", "wait e 1 s2", "b"]


def test_new_spans_have_ids_of_their_own():
    trace, _ = inserted(Program().kernel("a", "s1", w="x").kernel("b", "s2", r="x"), "e")
    assert sorted(span.id for span in trace.spans) == [0, 1, 2, 3]


def test_an_edge_of_a_graph_goes_from_every_earlier_node_of_that_name():
    nodes = add_edge((node("a"), node("b", after=(0,)), node("a"), node("b"), node("a")), "a", "b")
    assert [n.parents for n in nodes] == [(), (0,), (), (0, 2), ()]
