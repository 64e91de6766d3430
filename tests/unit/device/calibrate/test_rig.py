"""The virtual GPU on the bench."""

from labkit.device.api import Work
from labkit.device.calibrate import measure_device
from labkit.device.calibrate.rig import VirtualRig
from labkit.device.costs import Linear, Profile
from labkit.device.virtual import VirtualDevice


def test_a_busy_kernel_takes_as_long_as_asked(rig):
    stream, (fn, work) = rig.device.stream("s"), rig.busy(1234)
    op = rig.device.launch(fn, stream, work=work, label="busy")
    rig.device.synchronize()
    assert rig.duration(op) == (1234, 1234)


def test_gaps_between_launches_are_not_busy():
    profile = Profile("x", kernel_gap_ns=100, kernels={"forward": Linear(base_ns=1000, launches=11)})
    rig = VirtualRig(VirtualDevice(profile))
    op = rig.device.launch(None, rig.device.stream("s"), work=Work("forward"), label="f")
    rig.device.synchronize()
    assert rig.duration(op) == (2000, 1000)
    assert rig.launches("forward", lambda: None) == 11


def test_memory_that_is_dropped_can_be_given_back(rig):
    block = rig.malloc(4096)
    assert rig.release() == 0, "it is in use"
    del block
    assert rig.release() == 1


def test_a_whole_device_comes_back(rig, truth):
    found = measure_device(rig, "copy", quick=True)
    assert (found.name, found.phases, found.kernels) == ("copy", {}, {})
    assert (found.malloc_ns, found.launch_ns, found.stage_only_bytes) == (
        truth.malloc_ns,
        truth.launch_ns,
        truth.stage_only_bytes,
    )
