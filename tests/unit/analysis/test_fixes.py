import pytest

from labkit.analysis.conflicts import find_conflicts
from labkit.analysis.fixes import Fix, apply, repair, smallest_fix
from tests.unit.analysis.programs import Program, node
from tests.unit.analysis.test_conflicts import random_program, reuse


def fix_of(program: Program) -> Fix:
    """The fix of the first conflict; applied, it removes the conflicts that it says, and no others."""
    trace = program.trace
    before = find_conflicts(trace)
    fix = smallest_fix(trace, before[0])
    assert fix is not None
    after = {conflict.key for conflict in find_conflicts(apply(trace, fix))}
    assert set(fix.removes) == {conflict.key for conflict in before} - after
    assert fix.removes[0] == before[0].key
    return fix


def test_a_new_event_where_there_is_none():
    fix = fix_of(Program().kernel("upload", "s1", w="x").kernel("forward", "s2", r="x"))
    assert fix.code == ("upload_done.record(s1)  # after `upload`", "s2.wait_event(upload_done)  # before `forward`")
    assert str(fix) == "upload_done.record(s1) after `upload`; s2.wait_event(upload_done) before `forward`"


def test_a_wait_alone_where_the_record_is_there():
    fix = fix_of(Program().kernel("upload", "s1", w="x").record("done[A]", "s1").kernel("forward", "s2", r="x"))
    assert fix.code == ("s2.wait_event(done)  # before `forward`",)


def test_a_record_that_does_not_cover_the_access_is_not_used():
    early = Program().record("e", "s1").kernel("upload", "s1", w="x").kernel("forward", "s2", r="x")
    assert fix_of(early).event == "upload_done"
    lost = Program().kernel("upload", "s1", w="x").record("e", "s1").record("e", "s3").kernel("forward", "s2", r="x")
    assert fix_of(lost).event == "upload_done"


def test_a_fix_that_was_not_tried_stands_before_its_own_operation():
    (conflict,) = find_conflicts(Program().kernel("a", "s1", w="x").kernel("b", "s2", r="x").trace)
    assert Fix(conflict.key, "x", "e", recorded=True).code == ("s2.wait_event(e)  # before `b`",)


def test_the_host_waits():
    fix = fix_of(Program().d2h("download", "s", "x", "h").record("e", "s").read("h"))
    assert fix.code == ("e.synchronize()  # before `read h`",)


def test_a_name_that_is_taken_gets_a_number():
    program = (
        Program().record("a_done", "s1").record("a_done_2", "s1").kernel("a", "s1", w="x").kernel("b", "s2", r="x")
    )
    assert fix_of(program).event == "a_done_3"


def test_a_wait_that_comes_before_several_operations_names_them_all():
    program = Program()
    for name in ("prefill", "decode"):
        program.kernel("upload", "s1", w="x").kernel(name, "s2", r="x").ssync("s2")
    assert fix_of(program).code[-1] == "s2.wait_event(upload_done)  # before `prefill` / `decode`"


def test_one_fix_may_remove_several_races():
    program = Program().kernel("a", "s1", w="x").kernel("b", "s2", r="x").kernel("c", "s2", r="x", w="x")
    assert len(fix_of(program).removes) == len(find_conflicts(program.trace)) == 3


def test_inside_a_capture():
    program = Program().replay("g", "s", node("a", w="x"), node("b", "x")).replay("g", "s")
    fix = fix_of(program)
    assert fix.capture == "g"
    assert str(fix).startswith("in the capture of g: a_done.record")


def test_memory_that_is_used_again():
    assert fix_of(reuse(ordered=False)).code[-1] == "s.wait_event(use_done)  # before `next`"


def test_a_fix_holds_far_from_where_it_was_found():
    program = Program()
    for _ in range(2_000):
        program.kernel("a", "s1", w="x").kernel("b", "s2", r="x").ssync("s2")
    fix = fix_of(program)
    assert not find_conflicts(apply(program.trace, fix))


def test_a_race_far_behind_the_first_is_repaired_too():
    program = Program()
    for number in range(3_000):
        program.kernel("quiet", "s1", w=f"q:{number}:{number + 1}")
    program.kernel("a", "s1", w="x").kernel("b", "s2", r="x")
    program.spans[:0] = Program().kernel("c", "s1", w="y").kernel("d", "s3", r="y").spans
    trace = program.trace
    fixes = repair(trace, find_conflicts(trace))
    assert [fix.event for fix in fixes] == ["c_done", "a_done"]
    assert not find_conflicts(apply(trace, *fixes))


def test_nothing_to_repair():
    assert repair(Program().trace, []) == ()


@pytest.mark.parametrize("seed", range(40))
def test_any_program_is_repaired(seed):
    """Every race of a random program has a fix, and together they make it clean."""
    trace = random_program(seed, 30).trace
    conflicts = find_conflicts(trace)
    assert all(smallest_fix(trace, conflict) for conflict in conflicts)
    assert not find_conflicts(apply(trace, *repair(trace, conflicts)))
