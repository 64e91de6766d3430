"""VirtualGPU itself: devices, names, determinism, and what is refused."""

from __future__ import annotations

import pytest
import torch

import labkit
from labkit.device.virtual.hardware import Hardware
from labkit.errors import InvalidArgument


def test_ten_lines_from_the_documentation() -> None:
    gpu = labkit.VirtualGPU()
    s = gpu.Stream()
    a = gpu.empty(100, 100, device="cuda").normal_(0.0, 1.0)
    with gpu.stream(s):
        b = a.sum()  # may start before normal_ has finished
    c = a.sum()
    gpu.synchronize()
    assert b.shape == c.shape == torch.Size([])
    assert c.item() == pytest.approx(sum(sum(row) for row in a.tolist()), abs=1e-3)


def test_random_numbers_are_the_same_in_every_run_and_differ_by_seed() -> None:
    def draw(seed: int) -> list[float]:
        gpu = labkit.VirtualGPU(seed=seed)
        return gpu.empty(4, device="cuda").normal_().tolist()

    assert draw(0) == draw(0) != draw(1)


def test_the_host_takes_time() -> None:
    gpu = labkit.VirtualGPU("zero")
    gpu.host(30)
    gpu.host(12.5, name="tokenize")
    assert gpu.now_us == 42.5
    assert [span.name for span in gpu.trace().of_kind("phase")] == ["host", "tokenize"]


def test_devices_and_their_current_streams() -> None:
    gpu = labkit.VirtualGPU("zero", hardware=Hardware(gpus=2))
    assert gpu.device_count() == 2
    with gpu.use_device(1):
        assert gpu.current_device() == 1
        assert gpu.current_stream() == gpu.default_stream("cuda:1") != gpu.default_stream("cuda:0")
        assert gpu.zeros(2, device="cuda").device == "cuda:1"
    assert gpu.current_device() == 0


def test_each_device_is_synchronised_by_itself() -> None:
    gpu = labkit.VirtualGPU("zero", hardware=Hardware(gpus=2))
    gpu.kernel("a", 10, stream=gpu.default_stream(0))
    gpu.kernel("b", 50, stream=gpu.default_stream(1))
    gpu.synchronize()
    assert gpu.now_us == 10
    gpu.synchronize("cuda:1")
    assert gpu.now_us == 50


@pytest.mark.parametrize("device", ["cuda:1", "tpu", "cuda:x"])
def test_an_unknown_device_is_named(device: str) -> None:
    with pytest.raises(InvalidArgument, match=device):
        labkit.VirtualGPU().zeros(1, device=device)


def test_other_bad_arguments_are_named() -> None:
    gpu = labkit.VirtualGPU()
    with pytest.raises(InvalidArgument, match="handle=77"):
        gpu.ExternalStream(77)
    with pytest.raises(InvalidArgument, match="pin_memory"):
        gpu.empty(1, device="cuda", pin_memory=True)
    with pytest.raises(InvalidArgument, match="mode='loud'"):
        gpu.set_sync_debug_mode("loud")


def test_a_trace_starts_where_the_last_one_ended() -> None:
    gpu = labkit.VirtualGPU()
    gpu.kernel("a", 1)
    first = gpu.trace()
    assert gpu.trace() is first
    gpu.kernel("b", 1)
    assert [span.name for span in gpu.trace().of_kind("kernel")] == ["b"]


def test_without_a_trace_everything_but_the_trace_works() -> None:
    gpu = labkit.VirtualGPU(trace=False)
    x = gpu.zeros(4, device="cuda")
    x[1:3].copy_(gpu.tensor([5.0, 6.0], pin_memory=True), non_blocking=True)
    assert x.tolist() == [0, 5, 6, 0]
    with pytest.raises(InvalidArgument, match="trace"):
        gpu.trace()


@pytest.mark.parametrize("op_us", [-1, float("nan"), float("inf"), "10"])
def test_a_duration_that_is_none_is_refused_at_once(op_us):
    with pytest.raises(InvalidArgument, match="op_us"):
        labkit.VirtualGPU(op_us=op_us)
