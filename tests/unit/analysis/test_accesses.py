from labkit.analysis.accesses import Graphs, Memory, family, parts_of, touches
from labkit.trace.events import Touch
from tests.unit.analysis.programs import Program, node


def parts(program: Program) -> list[tuple[str, int, bool, list[str], list[str]]]:
    graphs = Graphs(program.trace)
    return [
        (part.name, part.node, part.by_host, [t.buffer for t in part.reads], [t.buffer for t in part.writes])
        for span in program.spans
        for part in parts_of(span, graphs)
    ]


def test_a_kernel_is_one_part_of_the_device():
    assert parts(Program().kernel("k", "s", "x y", "z")) == [("k", -1, False, ["x", "y"], ["z"])]


def test_a_host_access_is_one_part_of_the_host():
    assert parts(Program().read("h")) == [("read h", -1, True, ["h"], [])]


def test_a_pinned_upload_is_the_devices_alone_and_a_pageable_one_takes_its_source_as_the_host():
    assert parts(Program().h2d("up", "s", "h", "x")) == [("up", -1, False, ["h"], ["x"])]
    pageable = Program().h2d("up", "s", "h", "x", place="pageable")
    assert parts(pageable) == [("up", -1, True, ["h"], []), ("up", -1, False, [], ["x"])]


def test_a_graph_is_a_part_for_each_node():
    program = Program().replay("g", "s", node("a", w="x"), node("b", "x", after=(0,)))
    assert parts(program) == [("a", 0, False, [], ["x"]), ("b", 1, False, ["x"], [])]


def test_a_graph_that_the_trace_does_not_know_has_no_parts():
    assert parts(Program().replay("g", "s")) == []


def test_ancestors_are_found_along_every_path():
    nodes = (node("a"), node("b", after=(0,)), node("c", after=(0,)), node("d", after=(1, 2)), node("e"))
    found = Graphs(Program().replay("g", "s", *nodes).trace).ancestors("g")
    assert [bin(bits) for bits in found] == ["0b0", "0b1", "0b1", "0b111", "0b0"]


def test_reads_come_before_writes():
    graphs = Graphs(Program().trace)
    (part,) = parts_of(Program().kernel("k", "s", "x", "x y").spans[0], graphs)
    assert [(touch.buffer, write) for touch, write in touches(part)] == [("x", False), ("x", True), ("y", True)]


def test_memory_is_told_apart_by_allocation_then_by_name():
    memory = Memory(Program().trace)
    assert memory.locate(Touch("x", 0, 8, "device", 3)) == (3, 0, 8)
    assert memory.locate(Touch("x", 4, 8, "device")) == ("x", 4, 8)


def test_allocations_of_one_block_lie_where_the_trace_says():
    memory = Memory(Program(memory={3: (1, 64), 4: (1, 0)}).trace)
    assert memory.locate(Touch("x", 8, 16, "device", 3)) == ("block 1", 72, 80)
    assert memory.locate(Touch("y", 8, 16, "device", 4)) == ("block 1", 8, 16)
    assert memory.locate(Touch("z", 8, 16, "device", 1)) == (1, 8, 16)


def test_a_family_is_the_name_without_its_slot():
    assert [family(name) for name in ("h2d_done[A]", "h2d_done", "graph[A,3]")] == ["h2d_done", "h2d_done", "graph"]
