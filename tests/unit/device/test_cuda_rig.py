"""A real GPU on the bench."""

import pytest
import torch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]


@pytest.fixture(scope="module")
def rig():
    from labkit.device.cuda_rig import CudaRig

    return CudaRig()


def test_launches_are_counted(rig):
    x = torch.zeros(4, device="cuda")
    assert rig.launches("two", lambda: x.add_(1).mul_(2)) == 2


def test_a_longer_kernel_takes_longer_in_proportion(rig):
    stream, times = rig.device.stream("s"), []
    rig.timing(True)
    for ns in (2_000_000, 4_000_000):
        fn, work = rig.busy(ns)
        for _ in range(2):
            op = rig.device.launch(fn, stream, reads=(), writes=(), work=work, label="busy")
        rig.device.synchronize()
        times.append(rig.duration(op)[0])
    rig.timing(False)
    assert times[1] / times[0] == pytest.approx(2, rel=0.1)


def test_without_timing_an_operation_tells_nothing(rig):
    fn, work = rig.tiny()
    assert rig.device.launch(fn, rig.device.stream("s"), reads=(), writes=(), work=work, label="tiny") is None


def test_dropped_memory_is_given_back(rig):
    rig.release()
    block = rig.malloc(64 << 20)
    reserved = torch.cuda.memory_reserved()
    del block
    assert rig.release() >= 1
    assert torch.cuda.memory_reserved() < reserved
