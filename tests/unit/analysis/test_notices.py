from labkit.analysis.notices import CLOBBERED, OVERWRITTEN, STALE, notices
from labkit.trace.events import GraphNode, Touch
from tests.unit.analysis.programs import Program, node, touches


def found(program: Program) -> list[tuple[str, str, str, str, int]]:
    return [(n.kind, n.first, n.second, n.buffer, n.count) for n in notices(program.trace)]


# -- a result that nobody read -----------------------------------------------------------------------------------------


def test_a_download_over_an_unread_result():
    program = Program().d2h("down", "s", "x", "h", blocking=True).d2h("down", "s", "x", "h", blocking=True).read("h")
    assert found(program) == [(OVERWRITTEN, "down", "down", "h", 1)]


def test_a_read_in_between_makes_room():
    program = Program().d2h("down", "s", "x", "h").read("h").d2h("down", "s", "x", "h")
    assert found(program) == []


def test_only_the_bytes_that_were_not_read_are_lost():
    half = Program().d2h("down", "s", "x", "h").read("h:0:32").d2h("down2", "s", "x", "h:0:32")
    assert found(half) == []
    other_half = Program().d2h("down", "s", "x", "h").read("h:0:32").d2h("down2", "s", "x", "h:32:64")
    assert found(other_half) == [(OVERWRITTEN, "down", "down2", "h", 1)]


def test_a_copy_back_counts_as_a_read_and_a_host_write_as_the_hosts_decision():
    assert found(Program().d2h("out", "s", "x", "h").h2d("back", "s", "h", "y").d2h("out", "s", "x", "h")) == []
    assert found(Program().d2h("out", "s", "x", "h").write("h").d2h("out", "s", "x", "h")) == []


def test_device_memory_may_be_overwritten_unread():
    assert found(Program().kernel("a", "s", w="x").kernel("a", "s", w="x")) == []


def test_a_download_in_a_graph_counts():
    down = node("down", "", "h", place="pinned")
    assert found(Program().replay("g", "s", down).replay("g", "s")) == [(OVERWRITTEN, "down", "down", "h", 1)]


def test_equal_notices_are_counted():
    program = Program()
    for step in range(4):
        program.d2h("down", "s", "x", f"h[{'AB'[step % 2]}]", step=step)
    (notice,) = notices(program.trace)
    assert (notice.count, notice.step, notice.buffer) == (2, 0, "h[A]")
    assert "step 2 overwrites h[A]" in notice.text and "of step 0" in notice.text


def test_a_read_that_finds_a_later_steps_result():
    """Looking ahead with one buffer: each step reads what the next one left, and that is the only read of it."""
    program = Program().d2h("down", "s", "x", "h", step=0)
    for step in range(3):
        program.d2h("down", "s", "x", "h", step=step + 1)
        program.add("host_read", "read h", reads=touches("h", "pinned"), step=step)
    (notice,) = notices(program.trace)
    assert (notice.kind, notice.step, notice.count) == (OVERWRITTEN, 0, 3)


def test_a_read_of_an_older_steps_result_is_the_programs_business():
    program = Program().d2h("down", "s", "x", "h", step=0)
    program.add("host_read", "read h", reads=touches("h", "pinned"), step=5)
    assert found(program) == []


# -- a pool that two graphs share (58) ---------------------------------------------------------------------------------

TEMPORARY, OUT1, OUT2 = (Touch(name, 0, 64, "device", number) for number, name in enumerate(("t1", "out1", "out2"), 1))
POOL = {1: (1, 0), 2: (2, 0), 3: (1, 0)}  # t1 was freed at the end of g1's capture: out2 has its memory


def compute(name: str, reads: tuple[Touch, ...], writes: tuple[Touch, ...], after: tuple[int, ...] = ()) -> GraphNode:
    return GraphNode(name, "compute", reads, writes, after)


def pool(*order: str) -> Program:
    program = Program(memory=POOL)
    program.graphs = {
        "g1": (compute("first", (), (TEMPORARY,)), compute("second", (TEMPORARY,), (OUT1,), (0,))),
        "g2": (compute("third", (), (OUT2,)),),
    }
    for graph in order:
        program.replay(graph, "s")
    return program.kernel("use", "s", [OUT1, OUT2])


def test_replays_in_the_order_of_capture_are_right_58():
    assert found(pool("g1", "g2")) == []


def test_replays_in_the_other_order_clobber_58():
    assert found(pool("g2", "g1")) == [(CLOBBERED, "third", "first", "out2", 1)]
    (notice,) = notices(pool("g2", "g1").trace)
    assert "graph g1 has overwritten it before `use` reads it" in notice.text


def test_an_output_read_in_time_is_not_clobbered_58():
    program = pool()
    program.spans.clear()
    program.replay("g2", "s").kernel("use", "s", [OUT2]).replay("g1", "s").kernel("use", "s", [OUT1])
    assert found(program) == []


def test_memory_read_before_it_was_written_as_itself_is_not_clobbered():
    assert found(pool("g1")) == []


# -- an input that was not refilled (56) -------------------------------------------------------------------------------


def test_a_replay_without_a_fresh_input():
    program = Program().h2d("up", "s", "h", "x").replay("g", "s", node("n", "x", "y")).replay("g", "s")
    assert found(program) == [(STALE, "up", "g", "x", 1)]


def test_a_refilled_input_is_fresh():
    program = Program().h2d("up", "s", "h", "x").replay("g", "s", node("n", "x", "y")).h2d("up", "s", "h", "x")
    assert found(program.replay("g", "s")) == []


def test_what_was_never_written_in_the_trace_is_no_input():
    """Weights are there from the start."""
    assert found(Program().replay("g", "s", node("n", "weights", "y")).replay("g", "s")) == []


def test_what_the_graph_keeps_for_itself_is_no_input():
    """A cache that a kernel filled first, and that the graph reads and writes."""
    program = Program().kernel("prefill", "s", w="kv").replay("g", "s", node("n", "kv", "kv")).replay("g", "s")
    assert found(program) == []


def test_an_input_that_the_graph_changes_must_still_be_refilled():
    program = Program().h2d("up", "s", "h", "x").replay("g", "s", node("carry", "x", "x")).replay("g", "s")
    assert found(program) == [(STALE, "up", "g", "x", 1)]


def test_another_graph_may_refill_it():
    program = Program().replay("a", "s", node("m", "", "x")).replay("b", "s", node("n", "x", "y"))
    assert found(program.replay("a", "s").replay("b", "s")) == []
    assert found(program.replay("b", "s")) == [(STALE, "m", "b", "x", 1)]
