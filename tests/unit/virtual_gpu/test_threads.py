"""Current streams and devices nest, and are each thread's own."""

from __future__ import annotations

import threading

import labkit


def test_blocks_nest_and_end_in_any_case() -> None:
    gpu = labkit.VirtualGPU()
    s, t = gpu.Stream(), gpu.Stream()
    with gpu.stream(s):
        try:
            with gpu.stream(t), gpu.stream(None):
                assert gpu.current_stream() == t
                raise KeyError
        except KeyError:
            assert gpu.current_stream() == s
    assert gpu.current_stream() == gpu.default_stream()


def test_a_thread_has_streams_of_its_own() -> None:
    gpu, seen = labkit.VirtualGPU(), []
    with gpu.stream(gpu.Stream()):
        thread = threading.Thread(target=lambda: seen.extend([gpu.current_stream(), gpu.ExternalStream(2)]))
        thread.start()
        thread.join()
    assert seen[0] == gpu.default_stream()
    assert seen[1] != gpu.ExternalStream(2)
