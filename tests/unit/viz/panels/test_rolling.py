from __future__ import annotations

from typing import Any

from labkit import Engine
from labkit.trace.events import PHASES
from labkit.viz.panels.rolling import Rolling


def engine(rung: str = "carry_over") -> Engine:
    made = Engine.from_pretrained("toy", switches=rung, profile="article-8b")
    made.submit([1, 2, 3], max_new_tokens=12)
    return made


def run(rolling: Rolling, made: Engine, steps: int) -> None:
    for _ in range(steps):
        tokens = sum(event.token is not None for event in made.step())
        rolling.collect()
        rolling.step_settled(tokens)


def test_spans_are_those_of_the_engine_in_issue_order() -> None:
    rolling = Rolling(keep=20)
    with engine() as made:
        rolling.follow(made.device)
        run(rolling, made, 12)
        trace = rolling.trace()
    assert [span.id for span in trace.spans] == list(range(len(trace.spans)))
    for phase in PHASES[1:]:
        assert [span.step for span in trace.spans if span.kind == "phase" and span.name == phase] == list(range(12))
    assert all(edge.before < len(trace.spans) for edge in trace.edges) and trace.edges


def test_what_is_older_than_the_steps_to_keep_is_forgotten() -> None:
    rolling = Rolling(keep=3)
    sizes = []
    with engine() as made:
        rolling.follow(made.device)
        for _ in range(11):
            run(rolling, made, 1)
            sizes.append((len(rolling._spans), len(rolling._edges)))
        settled = [span.step for span in rolling.trace().spans if span.name == "settle"]
    assert settled[-1] - settled[0] in (2, 3)
    assert max(sizes[6:]) <= max(sizes[:6]), "it grows"


def test_a_second_engine_goes_on_where_the_first_stopped() -> None:
    rolling = Rolling(keep=40)
    with engine("events") as made:
        rolling.follow(made.device)
        run(rolling, made, 5)
        before = rolling.trace()
    stood = rolling.now_ns
    with engine("carry_over") as made:
        rolling.follow(made.device)
        assert rolling.now_ns == stood
        run(rolling, made, 5)
        after = rolling.trace()
    fresh = after.spans[len(before.spans) :]
    assert after.spans[: len(before.spans)] == before.spans
    assert min(span.start_ns for span in fresh) >= stood
    assert min(span.step for span in fresh) == max(span.step for span in before.spans) + 1
    assert len({span.id for span in after.spans}) == len(after.spans)


def test_time_that_passes_between_two_calls_is_cut_out() -> None:
    rolling = Rolling(keep=40)
    with engine("events") as made:
        rolling.follow(made.device)
        run(rolling, made, 3)
        stood = rolling.now_ns
        made.device.sleep_until(made.device.now_ns() + 10**9)
        rolling.resume()
        run(rolling, made, 1)
        first = min(span.start_ns for span in rolling.trace().spans if span.step == 3)
    assert first == stood


def test_tokens_per_second_are_those_of_the_kept_steps() -> None:
    rolling = Rolling(keep=4)
    times: list[Any] = []
    with engine("events") as made:
        rolling.follow(made.device)
        assert rolling.tokens_per_s == 0
        for _ in range(8):
            run(rolling, made, 1)
            times.append(rolling.now_ns)
    assert rolling.tokens_per_s == 4e9 / (times[-1] - times[-5])
