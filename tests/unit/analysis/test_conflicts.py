"""The rules of the semantics that say what orders two accesses, each as the smallest program that shows it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.analysis.conflicts import find_conflicts, racing_pairs
from labkit.trace.events import Touch
from tests.unit.analysis.programs import Program, Reachability, node

RAW, WAR, WAW = "read after write", "write after read", "write after write"


def kinds(program: Program) -> list[str]:
    return [conflict.key.kind for conflict in find_conflicts(program.trace)]


def pairs(program: Program) -> list[tuple[str, str]]:
    return [(conflict.first.name, conflict.second.name) for conflict in find_conflicts(program.trace)]


# -- streams -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("r1", "w1", "r2", "w2", "kind"), [("", "x", "x", "", RAW), ("x", "", "", "x", WAR), ("", "x", "", "x", WAW)]
)
def test_two_streams_without_an_edge_race(r1, w1, r2, w2, kind):
    assert kinds(Program().kernel("a", "s1", r1, w1).kernel("b", "s2", r2, w2)) == [kind]


def test_two_reads_do_not_race():
    assert not kinds(Program().kernel("a", "s1", "x").kernel("b", "s2", "x"))


def test_one_stream_is_in_order_2():
    assert not kinds(Program().kernel("a", "s", w="x").kernel("b", "s", r="x", w="x").kernel("c", "s", w="x"))


def test_running_one_after_the_other_is_no_order_4_42_65():
    """Neither times nor the one copy engine order anything."""
    program = Program().h2d("up", "s1", "h", "x").h2d("up2", "s2", "g", "x")
    apart = [
        type(span)(
            span.id, span.kind, span.name, span.lane, 1000 * i, 1000 * i + 1, stream=span.stream, writes=span.writes
        )
        for i, span in enumerate(program.spans)
    ]
    program.spans = apart
    assert kinds(program) == [WAW]


def test_byte_ranges_and_not_pointers_66():
    assert kinds(Program().kernel("a", "s1", w="x:0:64").kernel("b", "s2", r="x:32:96")) == [RAW]
    assert not kinds(Program().kernel("a", "s1", w="x:0:64").kernel("b", "s2", r="x:64:96"))


def test_an_empty_range_touches_nothing():
    assert not kinds(Program().kernel("a", "s1", w="x:8:8").kernel("b", "s2", r="x"))


def test_two_buffers_of_one_name_are_two():
    one, other = Touch("x", 0, 64, "device", 1), Touch("x", 0, 64, "device", 2)
    assert not kinds(Program().kernel("a", "s1", w=[one]).kernel("b", "s2", r=[other]))
    assert kinds(Program().kernel("a", "s1", w=[one]).kernel("b", "s2", r=[one])) == [RAW]


def test_every_race_with_an_earlier_agent_is_found():
    program = Program().kernel("a", "s1", r="x").kernel("b", "s2", r="x").kernel("c", "s3", w="x")
    assert pairs(program) == [("a", "c"), ("b", "c")]


def test_conflicts_are_grouped_and_counted():
    program = Program()
    for _ in range(5):
        program.kernel("a", "s1", w="x[A]").kernel("b", "s2", r="x[A]")
    raw, war = find_conflicts(program.trace)
    assert (raw.key.kind, raw.key.buffer, raw.count) == (RAW, "x", 5)
    assert (war.key.kind, war.count) == (WAR, 4)
    assert (raw.first.position, raw.second.position) == (0, 1)


# -- default streams ---------------------------------------------------------------------------------------------------


def test_a_torch_stream_and_the_default_stream_are_not_ordered_8():
    assert kinds(Program().kernel("a", "L", w="x").kernel("b", "s", r="x")) == [RAW]
    assert kinds(Program().kernel("a", "s", w="x").kernel("b", "L", r="x")) == [RAW]


def test_a_blocking_stream_and_the_default_stream_are_9():
    assert not kinds(Program().kernel("a", "L", w="x").kernel("b", "bl", r="x").kernel("c", "L", w="x"))


def test_two_blocking_streams_are_ordered_only_across_the_default_stream_10():
    assert kinds(Program().kernel("a", "bl", w="x").kernel("b", "bl2", r="x")) == [RAW]
    assert not kinds(Program().kernel("a", "bl", w="x").kernel("k", "L").kernel("b", "bl2", r="x"))


def test_a_record_on_the_default_stream_covers_the_blocking_streams_10():
    assert not kinds(Program().kernel("a", "bl", w="x").record("e", "L").wait("s", "e").kernel("b", "s", r="x"))
    assert kinds(Program().kernel("a", "t", w="x").record("e", "L").wait("s", "e").kernel("b", "s", r="x")) == [RAW]


def test_synchronizing_the_default_stream_ignores_torch_streams_38():
    assert kinds(Program().d2h("down", "s", "x", "h").ssync("L").read("h")) == [RAW]
    assert not kinds(Program().d2h("down", "bl", "x", "h").ssync("L").read("h"))


def test_a_default_stream_waits_for_the_blocking_streams_of_its_own_gpu():
    program = Program(
        streams={"L": {"default": True}, "M": {"default": True, "gpu": 1}, "bl": {"blocking": True, "gpu": 1}}
    )
    program.kernel("a", "bl", w="x").kernel("b", "M", r="x").kernel("c", "L", r="x")
    assert pairs(program) == [("a", "c")]


def test_without_flags_no_stream_is_the_default_stream():
    program = Program().kernel("a", "L", w="x").kernel("b", "bl", r="x")
    program.meta = {}
    assert kinds(program) == [RAW]


# -- events ------------------------------------------------------------------------------------------------------------


def test_record_and_wait_order_17():
    assert not kinds(Program().kernel("a", "s1", w="x").record("e", "s1").wait("s2", "e").kernel("b", "s2", r="x"))


def test_a_record_covers_what_came_before_it_only_15():
    program = Program().record("e", "s1").kernel("a", "s1", w="x").wait("s2", "e").kernel("b", "s2", r="x")
    assert kinds(program) == [RAW]


def test_a_wait_uses_the_record_at_the_time_of_the_call_17():
    program = Program().kernel("a", "s1", w="x").record("e", "s1").wait("s2", "e")
    program.kernel("late", "s1", w="y").record("e", "s1").kernel("b", "s2", r="x y")
    assert pairs(program) == [("late", "b")]


def test_a_wait_before_the_record_waits_for_nothing_18():
    program = Program().wait("s2", "e").kernel("a", "s1", w="x").record("e", "s1").kernel("b", "s2", r="x")
    assert kinds(program) == [RAW]


def test_a_new_record_on_another_stream_forgets_the_old_one_19():
    program = Program().kernel("a", "s1", w="x").record("e", "s1").record("e", "s3")
    assert kinds(program.wait("s2", "e").kernel("b", "s2", r="x")) == [RAW]


def test_a_wait_is_for_later_work_of_its_stream_and_not_for_the_host_20():
    early = Program().kernel("a", "s1", w="x").record("e", "s1").kernel("b", "s2", r="x").wait("s2", "e")
    assert kinds(early) == [RAW]
    host = Program().d2h("down", "s1", "x", "h").record("e", "s1").wait("s2", "e").read("h")
    assert kinds(host) == [RAW]


def test_wait_stream_is_a_fresh_record_and_a_wait_21():
    program = Program().kernel("a", "s1", w="x").wait_stream("s2", "s1").kernel("late", "s1", w="y")
    assert pairs(program.kernel("b", "s2", r="x y")) == [("late", "b")]


def test_waits_are_transitive():
    program = Program().kernel("a", "s1", w="x").wait_stream("s2", "s1").wait_stream("s3", "s2")
    assert not kinds(program.kernel("b", "s3", r="x"))


def test_a_true_query_orders_the_host_and_a_false_one_does_not_22():
    down = Program().d2h("down", "s", "x", "h").record("e", "s")
    assert kinds(down.query("e", False).read("h")) == [RAW]
    assert not kinds(Program().d2h("down", "s", "x", "h").record("e", "s").query("e", True).read("h"))


# -- copies and the host -----------------------------------------------------------------------------------------------


def test_a_submission_carries_the_hosts_clock_68():
    assert not kinds(Program().write("h").h2d("up", "s", "h", "x"))
    after = Program().d2h("down", "s1", "x", "h").ssync("s1").kernel("b", "s2", r="h")
    assert not kinds(after)


def test_a_pinned_upload_is_still_reading_26_32():
    assert kinds(Program().h2d("up", "s", "h", "x").write("h")) == [WAR]
    assert not kinds(Program().h2d("up", "s", "h", "x").record("e", "s").esync("e").write("h"))


def test_the_default_stream_does_not_make_a_copy_block_27():
    assert kinds(Program().h2d("up", "L", "h", "x").write("h")) == [WAR]


def test_a_blocking_copy_waits_for_its_own_stream_only_28():
    program = Program().d2h("other", "s2", "y", "g").d2h("down", "s1", "x", "h", blocking=True)
    assert pairs(program.read("h").read("g")) == [("other", "read g")]


def test_a_pageable_upload_has_left_its_source_when_it_returns_29():
    assert not kinds(Program().h2d("up", "s", "h", "x", place="pageable").write("h"))
    target = Program().h2d("up", "s", "h", "x", place="pageable").kernel("b", "s2", r="x")
    assert kinds(target) == [RAW]


def test_a_pageable_source_must_be_there_before_the_call_29():
    """The driver reads it during the call, as the host."""
    program = Program().d2h("down", "s1", "x", "h").h2d("up", "s2", "h", "y", place="pageable")
    assert pairs(program) == [("down", "up")]
    assert find_conflicts(program.trace)[0].key.second.by_host


def test_a_pageable_download_is_there_when_it_returns_30():
    assert not kinds(Program().d2h("down", "s", "x", "h", place="pageable").read("h"))


def test_a_pinned_download_is_not_31():
    assert kinds(Program().d2h("down", "s", "x", "h").read("h")) == [RAW]
    assert kinds(Program().d2h("down", "s", "x", "h").record("e", "s").read("h").esync("e")) == [RAW]


def test_a_stream_wait_covers_that_stream_and_a_device_wait_all_35_36():
    down = Program().d2h("down", "s1", "x", "h").d2h("down2", "s2", "y", "g").ssync("s1").read("h").read("g")
    assert pairs(down) == [("down2", "read g")]
    assert not kinds(Program().d2h("down", "s1", "x", "h").d2h("down2", "s2", "y", "g").ssync("s1", "s2").read("h g"))


def test_a_blocking_launch_orders_the_host_40():
    assert not kinds(Program().kernel("a", "s1", w="h", blocking=True).read("h"))


def test_two_host_accesses_are_in_order():
    assert not kinds(Program().write("h").read("h").write("h"))


def test_phases_and_launches_count_for_nothing():
    program = Program().kernel("a", "s1", w="x").phase("compute").add("launch", "launch b", stream="s2")
    assert kinds(program.kernel("b", "s2", r="x")) == [RAW]


# -- graphs ------------------------------------------------------------------------------------------------------------


def test_nodes_are_ordered_by_the_graphs_edges_alone_52_67():
    side_by_side = Program().replay("g", "s", node("a", w="x"), node("b", r="x"))
    assert pairs(side_by_side) == [("a", "b")]
    diamond = (node("a", w="x"), node("b", "x", "y", (0,)), node("c", "x", "z", (0,)), node("d", "y z", "x", (1, 2)))
    assert not kinds(Program().replay("g", "s", *diamond))
    open_end = (*diamond[:3], node("d", "y", "x", (1,)))
    assert pairs(Program().replay("g", "s", *open_end)) == [("c", "d")]


def test_a_path_through_other_nodes_orders_two_nodes():
    chain = (node("a", w="x"), node("b", after=(0,)), node("c", after=(1,)), node("d", "x", after=(2,)))
    assert not kinds(Program().replay("g", "s", *chain))


def test_a_replay_is_one_item_of_its_stream_53():
    program = Program().kernel("a", "s", w="x").replay("g", "s", node("n", "x", "y")).kernel("b", "s", "y", "x")
    assert not kinds(program)


def test_two_replays_of_one_graph_are_ordered_54():
    nodes = (node("n", w="x"),)
    assert not kinds(Program().replay("g", "s1", *nodes).replay("g", "s2"))
    assert kinds(Program().replay("g", "s1", *nodes).replay("g2", "s2", *nodes)) == [WAW]


def test_work_behind_a_second_replay_is_ordered_after_the_first_54():
    program = Program().replay("g", "s1", node("n", w="x")).replay("g", "s2").kernel("b", "s2", r="x")
    assert not kinds(program)
    before_it = Program().kernel("a", "s1", w="y").replay("g", "s1", node("n", w="x")).kernel("c", "s1", w="z")
    assert pairs(before_it.replay("g", "s2").kernel("b", "s2", r="y z")) == [("c", "b")]


def test_a_replay_reads_its_pinned_source_each_time_55():
    up = GraphUpload = node("up", "h", "x", place="pinned")
    program = Program().write("h").replay("g", "s", up).write("h").replay("g", "s", GraphUpload)
    (race,) = find_conflicts(program.trace)
    assert (race.first.name, race.second.name, race.key.kind) == ("up", "write h", WAR)
    assert not kinds(Program().write("h").replay("g", "s", up).ssync("s").write("h").replay("g", "s"))


def test_a_static_input_is_refilled_under_the_replay_56():
    assert kinds(Program().replay("g", "s", node("n", "x")).h2d("up", "t", "h", "x")) == [WAR]
    ordered = Program().replay("g", "s", node("n", "x")).wait_stream("t", "s").h2d("up", "t", "h", "x")
    assert not kinds(ordered)


def test_a_record_behind_a_replay_covers_all_its_nodes():
    program = Program().replay("g", "s", node("a", w="x"), node("b", w="y")).record("e", "s").wait("t", "e")
    assert not kinds(program.kernel("k", "t", "x y"))


# -- memory that is used again -----------------------------------------------------------------------------------------


def reuse(*, ordered: bool) -> Program:
    """x is read on t, freed, and its memory given to y, which s writes."""
    x, y = Touch("x", 0, 64, "device", 1), Touch("y", 0, 64, "device", 2)
    program = Program(memory={1: (7, 0), 2: (7, 0)}).kernel("make", "s", w=[x]).wait_stream("t", "s")
    program.kernel("use", "t", r=[x])
    return (program.wait_stream("s", "t") if ordered else program).kernel("next", "s", w=[y])


def test_reuse_of_memory_across_streams_races_62_and_a_wait_mends_it_64():
    assert pairs(reuse(ordered=False)) == [("use", "next")]
    assert not kinds(reuse(ordered=True))


def test_parts_of_a_block_do_not_overlap():
    x, y = Touch("x", 0, 64, "device", 1), Touch("y", 0, 64, "device", 2)
    apart = Program(memory={1: (7, 0), 2: (7, 64)}).kernel("a", "s", w=[x]).kernel("b", "t", w=[y])
    assert not kinds(apart)
    overlapping = Program(memory={1: (7, 0), 2: (7, 32)}).kernel("a", "s", w=[x]).kernel("b", "t", w=[y])
    assert kinds(overlapping) == [WAW]


# -- any program -------------------------------------------------------------------------------------------------------

GRAPHS = {
    "g": (node("n0", "x:0:32", "y"), node("n1", "y", "x", (0,)), node("n2", "x:32:64", "z")),
    "h": (node("m0", "h", "x", place="pinned"), node("m1", "x", "h:0:32", (0,))),
}
BUFFERS = ("x", "x:0:32", "x:16:48", "y", "h", "h:32:64")


def random_program(seed: int, length: int) -> Program:
    draw = random.Random(seed)
    program = Program()
    program.graphs = dict(GRAPHS)
    for number in range(length):
        stream, other = draw.choices(["L", "bl", "bl2", "s", "t"], k=2)
        event, what, into = draw.choice("ef"), draw.choice(BUFFERS), draw.choice(BUFFERS)
        blocking = draw.random() < 0.3
        match draw.randrange(14):
            case 0 | 1 | 2:
                program.kernel(f"k{number}", stream, what, into)
            case 3:
                program.h2d(f"up{number}", stream, what, into, draw.choice(["pinned", "pageable"]), blocking=blocking)
            case 4:
                program.d2h(f"down{number}", stream, what, into, draw.choice(["pinned", "pageable"]), blocking=blocking)
            case 5 | 6:
                program.record(event, stream)
            case 7 | 8:
                program.wait(stream, event)
            case 9:
                program.query(event, draw.random() < 0.5)
            case 10:
                program.esync(event) if blocking else program.ssync(*{stream, other})
            case 11:
                program.read(what)
            case 12:
                program.write(what)
            case 13:
                program.replay(draw.choice("gh"), stream)
    return program


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 25))
def test_the_clocks_agree_with_reachability(seed, length):
    """What is reported is a race, and every access that races with an earlier one is reported with some earlier one."""
    trace = random_program(seed, length).trace
    truth = Reachability(trace).races()
    found = {(first.position, second.position) for first, second in racing_pairs(trace)}
    assert found <= truth
    assert {late for _, late in found} == {late for _, late in truth}
