"""The programs in which answers of lesson 03 are tried."""

from __future__ import annotations

import pytest

from labkit.lessons.support.stream_programs import STREAMS, BringBack, InChunks, second_waits, stream_of
from labkit.virtual_gpu import VirtualGPU


@pytest.mark.parametrize("kind", STREAMS)
def test_of_default_and_per_thread_streams_there_is_one_each(kind):
    gpu = VirtualGPU("zero")
    assert (stream_of(gpu, kind) == stream_of(gpu, kind)) == (kind in ("default", "per_thread"))


def test_two_kernels_measure_rules_8_9_and_11():
    waiting = {(first, second) for first in STREAMS for second in STREAMS if second_waits(first, second)}
    assert waiting == {
        ("default", "default"),
        ("per_thread", "per_thread"),
        ("default", "blocking"),
        ("blocking", "default"),
        ("default", "per_thread"),
        ("per_thread", "default"),
    }


def test_a_result_is_on_its_way():
    play = BringBack("virtual")
    play.download(play.y_host, play.y, play.compute)
    play.work()
    play.compute.synchronize()
    assert (play.read(), play.pieces) == (42, 1)


def test_chunks_have_buffers_of_their_own_and_values():
    play = InChunks("virtual")
    assert [play.read(chunk.x_host) for chunk in play.chunks] == [1, 2, 3, 4]
    assert len({id(buffer) for chunk in play.chunks for buffer in vars(chunk).values()}) == 16
    assert len(play.streams) == len(play.chunks)
    assert len(play.trace()) == 4  # the reads above: setting up is not part of the trace
