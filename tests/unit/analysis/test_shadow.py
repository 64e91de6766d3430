from labkit.analysis.accesses import Access, Part
from labkit.analysis.shadow import Shadow
from labkit.trace.events import Span, Touch

SPAN = Span(0, "kernel", "k", "compute", 0, 0, stream="s")
BYTES = Touch("x", 0, 64, "device")


def access(agent: int, epoch: int, *, write: bool, node: int = -1) -> Access:
    return Access(Part("k", node, False, (), (), ""), SPAN, 0, agent, epoch, BYTES, write)


def test_a_write_after_an_unordered_write_and_an_ordered_one():
    shadow, first = Shadow(), access(1, 1, write=True)
    assert shadow.visit(first, "x", 0, 64, [0, 1, 0]) == []
    assert shadow.visit(access(2, 1, write=True), "x", 0, 64, [0, 0, 1]) == [first]
    third = access(2, 2, write=True)
    assert shadow.visit(third, "x", 0, 64, [0, 1, 2]) == []


def test_a_settled_write_forgets_what_came_before_it():
    """A later access that races with the forgotten one races with the write too."""
    shadow, second = Shadow(), access(2, 1, write=True)
    shadow.visit(access(1, 1, write=False), "x", 0, 64, [0, 1, 0, 0])
    shadow.visit(second, "x", 0, 64, [0, 1, 1, 0])
    assert shadow.visit(access(3, 1, write=True), "x", 0, 64, [0, 0, 0, 1]) == [second]


def test_reads_of_several_agents_are_all_kept():
    shadow, reads = Shadow(), [access(agent, 1, write=False) for agent in (1, 2)]
    for read in reads:
        shadow.visit(read, "x", 0, 64, [0, *(int(agent == read.agent) for agent in (1, 2, 3))])
    assert shadow.visit(access(3, 1, write=True), "x", 0, 64, [0, 0, 0, 1]) == reads


def test_an_agent_is_held_to_its_latest_read():
    shadow, late = Shadow(), access(1, 2, write=False)
    shadow.visit(access(1, 1, write=False), "x", 0, 64, [0, 1, 0])
    shadow.visit(late, "x", 0, 64, [0, 2, 0])
    assert shadow.visit(access(2, 1, write=True), "x", 0, 64, [0, 1, 1]) == [late]


def test_a_pair_over_several_cells_is_one_pair():
    shadow, whole = Shadow(), access(1, 1, write=True)
    shadow.visit(access(1, 0, write=False), "x", 0, 32, [0, 0, 0])
    shadow.visit(whole, "x", 0, 64, [0, 1, 0])
    assert shadow.visit(access(2, 1, write=False), "x", 16, 48, [0, 0, 1]) == [whole]


def test_nodes_of_one_replay_are_ordered_by_their_ancestors():
    shadow, first = Shadow(), access(1, 5, write=True, node=0)
    shadow.visit(first, "x", 0, 64, [0, 5])
    assert shadow.visit(access(1, 5, write=False, node=1), "x", 0, 64, [0, 5], ancestors=0b0) == [first]
    assert shadow.visit(access(1, 5, write=False, node=2), "x", 0, 64, [0, 5], ancestors=0b1) == []


def test_other_memory_is_another_history():
    shadow = Shadow()
    shadow.visit(access(1, 1, write=True), "x", 0, 64, [0, 1, 0])
    assert shadow.visit(access(2, 1, write=True), "y", 0, 64, [0, 0, 1]) == []


def test_histories_that_have_become_equal_are_one_again():
    """Else a buffer written in small pieces would be looked at piece by piece for ever."""
    shadow = Shadow()
    for at in range(0, 64, 8):
        shadow.visit(access(1, at + 1, write=True), "x", at, at + 8, [0, at + 1, 0])
    assert shadow.pieces("x") == 8
    shadow.visit(access(1, 100, write=False), "x", 0, 64, [0, 100, 0])
    assert shadow.pieces("x") == 8
    shadow.visit(access(1, 101, write=True), "x", 0, 64, [0, 101, 0])
    assert shadow.pieces("x") == 1
