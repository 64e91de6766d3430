"""A batch's derived numbers."""

from labkit.engine.batch import Batch
from labkit.engine.request import Request
from labkit.engine.sampling import SamplingParams
from labkit.model.api import BatchShape


def test_rows_tokens_and_the_price_of_its_work():
    requests = [Request(i, [1, 2, 3], SamplingParams(), frozenset()) for i in range(3)]
    shape = BatchShape(rows=3, tokens=7, decode_rows=2, max_chunk=5, context=9)
    batch = Batch(4, requests, [3, 8, 0], [1, 1, 5], [True] * 3, [-1] * 3, shape, 18, random=False, logprobs=False)
    assert (batch.rows, batch.tokens) == (3, 7)
    assert not shape.decode_only
    work = batch.work("forward")
    assert (work.kind, work.rows, work.tokens, work.context) == ("forward", 3, 7, 18)


def test_a_batch_without_chunks_is_decode_only():
    assert BatchShape(rows=2, tokens=2, decode_rows=2, max_chunk=1, context=9).decode_only
