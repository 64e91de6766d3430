"""Lesson 07: one launch for a whole step, and what a graph freezes."""

from __future__ import annotations

from labkit.lessons.exercise import Exercise
from labkit.lessons.support.captures import judge_one_graph, judge_two_branches
from labkit.lessons.support.graph_keys import (
    BATCHES,
    FIELDS,
    judge_graph_key,
    judge_graph_rows,
    outcome,
    padding_rows,
    run_keyed,
    run_padded,
    run_reference,
)
from labkit.lessons.support.graph_pool import TwoGraphs, judge_both_outputs

__all__ = [
    "BATCHES",
    "FIELDS",
    "TwoGraphs",
    "both_outputs",
    "graph_key",
    "graph_rows",
    "one_graph",
    "outcome",
    "run_keyed",
    "run_padded",
    "run_reference",
    "two_branches",
]


def _start_one_graph(play):
    # 7.1: every replay reads the same input. Mend that, with one capture.
    x = play.new_input(5)
    graph = play.capture(lambda: play.double(src=x))  # y = 2 * x
    results = []
    for value in (5, 6, 7):
        x = play.new_input(value)
        play.replay(graph)
        results.append(play.result())
    return results


def _static_input(play):
    graph = play.capture(play.double)  # reads play.x
    results = []
    for value in (5, 6, 7):
        play.set_input(value)
        play.replay(graph)
        results.append(play.result())
    return results


def _upload_inside(play):
    def step():
        play.upload(stream=play.compute)
        play.double()

    graph = play.capture(step)
    results = []
    for value in (5, 6, 7):
        play.write(value)
        play.replay(graph)
        results.append(play.result())
    return results


one_graph = Exercise(
    number="7.1",
    name="one_graph",
    title="One graph, three inputs",
    task="""
    `play.capture(fn)` returns a graph of what `fn` enqueues, `play.replay(graph)` runs it, `play.result()` waits and
    returns the value of `y`. `play.double()` is the kernel `y = 2 * x`, and `play.double(src=b)` reads buffer `b`
    instead of `play.x`. `play.set_input(value)` uploads a value into `play.x`. Return the doubles of 5, 6 and 7, with
    one capture and three replays.
    """,
    starter=_start_one_graph,
    solutions=(_static_input, _upload_inside),
    hints=(
        "A capture keeps the *address* of a buffer. That a Python name stands for another buffer later, it never sees.",
        "Capture the kernel with a buffer that stays, `play.x`, and change what lies in it before each replay.",
        "`graph = play.capture(play.double)`, and in the loop `play.set_input(value)`, `play.replay(graph)`, "
        "`results.append(play.result())`.",
    ),
    judge=judge_one_graph,
)


def _start_two_branches(play):
    # 7.2: runs inside a capture on play.compute; left and right shall be able to run at the same time
    play.a(play.compute)
    play.left(play.compute)
    play.right(play.side)
    play.last(play.compute)


def _fork_and_join(play):
    forked, joined = play.event("forked"), play.event("joined")
    play.a(play.compute)
    forked.record(play.compute)
    play.side.wait_event(forked)
    play.left(play.compute)
    play.right(play.side)
    joined.record(play.side)
    play.compute.wait_event(joined)
    play.last(play.compute)


two_branches = Exercise(
    number="7.2",
    name="two_branches",
    title="Fork and join",
    task="""
    Your function runs inside a capture on `play.compute`. Enqueue four kernels: `play.a(stream)`, then `play.left` and
    `play.right`, which both need `a` and not each other, then `play.last`, which needs both. `left` and `right` shall
    be two branches of the graph: use `play.side` for one of them.
    """,
    starter=_start_two_branches,
    solutions=(_fork_and_join,),
    hints=(
        "A stream joins a capture by waiting for an event that was recorded inside it. Before that, its work is not "
        "captured.",
        "And it has to come back: before the capture ends, `play.compute` waits for an event of `play.side`.",
        "Two events: `forked`, recorded on compute after `a` and waited for by side; `joined`, recorded on side after "
        "`right` and waited for by compute before `last`.",
    ),
    judge=judge_two_branches,
)


def _start_graph_rows(batches, most):
    # 7.3: at most `most` row counts, the last one 12
    return [max(batches)]


def _least_padding(batches, most):
    from itertools import combinations

    def padding(sizes):
        return sum(min(size for size in sizes if size >= rows) - rows for rows in batches)

    largest, others = 12, sorted(set(batches))
    choices = [(*some, largest) for count in range(most) for some in combinations(others, count)]
    return min(choices, key=padding)


graph_rows = Exercise(
    number="7.3",
    name="graph_rows",
    title="Which sizes to capture?",
    task="""
    `batches` lists the number of rows of each decode step of a workload; the engine may have up to 12 rows. Choose at
    most `most` (3) row counts to capture graphs for. A step runs in the smallest graph that holds it, and the rows that
    are left over are computed for nothing. Get by with at most 30 of them. The engine runs with your sizes.
    """,
    starter=_start_graph_rows,
    solutions=(_least_padding,),
    hints=(
        "The largest size has to be 12, so you choose two more. Look at `lesson.BATCHES` first: which sizes come up "
        "how often?",
        "A size that equals a batch size saves its padding altogether. But the most frequent two are not the best two: "
        "what counts is how many steps there are, times how far each is from the next size.",
        "There are few choices: try all pairs of values from `set(batches)` with `itertools.combinations`, count the "
        "padding of each with `min(s for s in sizes if s >= rows) - rows`, and take the best.",
    ),
    judge=judge_graph_rows,
    measure=padding_rows,
    unit="padding rows",
)


def _start_graph_key(slot, rows, context, random, logprobs):
    # 7.4: what a graph is stored and found under
    return rows


def _everything(slot, rows, context, random, logprobs):
    return slot, rows, context, random, logprobs


graph_key = Exercise(
    number="7.4",
    name="graph_key",
    title="The key",
    task="""
    The engine asks your function twice: when it has captured a graph, and when it looks for one to replay. Return what
    it is stored under. `slot` is 0 or 1, `rows` the padded number of rows, `context` the bound on the context length
    that the kernels have built in, `random` whether some row is sampled at random, `logprobs` whether some row wants
    log-probabilities.
    """,
    starter=_start_graph_key,
    solutions=(_everything,),
    hints=(
        "Ask of each of the five: if two steps differ in it, does the same graph do the right thing for both?",
        "A graph has frozen addresses (which slot?) and frozen host numbers (how many rows, how long a context, which "
        "kernels at all?).",
        "All five, as a tuple.",
    ),
    judge=judge_graph_key,
)


def _start_both_outputs(graphs):
    # 7.5: return the values of out1 and out2; replay the second graph first
    graphs.replay_second()
    graphs.replay_first()
    return graphs.read(graphs.out1), graphs.read(graphs.out2)


def _read_in_between(graphs):
    graphs.replay_second()
    second = graphs.read(graphs.out2)
    graphs.replay_first()
    return graphs.read(graphs.out1), second


def _clone_in_between(graphs):
    graphs.replay_second()
    kept = graphs.out2.clone()
    graphs.replay_first()
    return graphs.read(graphs.out1), graphs.read(kept)


both_outputs = Exercise(
    number="7.5",
    name="both_outputs",
    title="Two graphs in one pool",
    task="""
    Two graphs share a memory pool, and `out2` of the second lies where the first has its temporary. Replay the second,
    then the first, and return the values of both outputs, `(out1, out2)`: 3 and 9. (This one runs on the virtual GPU in
    any case.)
    """,
    starter=_start_both_outputs,
    solutions=(_read_in_between, _clone_in_between),
    hints=(
        "When the first graph runs, it writes its temporary, whatever lies there by now.",
        "So `out2` has to be used before the first graph runs: read, or copied to memory outside the pool.",
        "`second = graphs.read(graphs.out2)` between the two replays, or `graphs.out2.clone()`.",
    ),
    judge=judge_both_outputs,
)
