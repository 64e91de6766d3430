"""A request counts its tokens, known and pending."""

from labkit.engine.request import Request, State, TokenEvent
from labkit.engine.sampling import SamplingParams


def test_counts():
    request = Request(3, [5, 6, 7], SamplingParams(max_new_tokens=4), frozenset())
    assert (request.output, request.generated, request.total, request.limit) == ([], 0, 3, 7)
    request.tokens += [8, 9]
    request.pending = 1
    assert (request.output, request.generated, request.total) == ([8, 9], 2, 6)
    assert request.prompt == [5, 6, 7]


def test_finished_is_a_state():
    request = Request(0, [1], SamplingParams(), frozenset())
    assert not request.finished
    request.state = State.FINISHED
    assert request.finished


def test_two_requests_with_the_same_contents_are_two_requests():
    params = SamplingParams()
    assert Request(0, [1], params, frozenset()) != Request(0, [1], params, frozenset())


def test_an_event_that_goes_on():
    event = TokenEvent(1, 7, 0)
    assert (event.finish_reason, event.logprob) == ("", None)
