"""Files of PyTorch's profiler as traces: what is read, on which lane, and what is refused."""

import gzip
import json

import pytest

from labkit.analysis.idle import LAUNCH, idle_gaps
from labkit.errors import InvalidArgument
from labkit.trace.events import KINDS, LANES
from labkit.trace.profiler import load_profile_trace
from tests.unit.profiles import envelope, event

EVENTS = [
    event("cuda_runtime", "cudaGraphLaunch", 2_000_000_100, 7_000, cbid=311, correlation=5),
    event("kernel", "void gemm<float>(int)", 2_000_020_000, 3_001, stream=7, correlation=5, device=0),
    event("kernel", "triton_red_fused", 2_000_023_500, 1_000, stream=7, correlation=5, device=0),
    event("cuda_runtime", "cudaMemcpyAsync", 2_000_008_000, 2_000, correlation=6),
    event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 2_000_025_000, 900, stream=11, correlation=6, bytes=256),
    event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 2_000_026_000, 900, stream=12, correlation=99, bytes=64),
    event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 2_000_027_000, 900, stream=7, correlation=98, bytes=64),
    event("gpu_memset", "Memset (Device)", 2_000_028_000, 500, stream=7, correlation=97),
    event("cuda_runtime", "cudaEventRecordWithFlags", 2_000_010_500, 300, correlation=7),
    event("cuda_runtime", "cudaStreamWaitEvent", 2_000_011_000, 300, correlation=8),
    event("cuda_runtime", "cudaEventSynchronize", 2_000_012_000, 9_000, correlation=9),
    event("cuda_runtime", "cudaEventQuery", 2_000_022_000, 300, correlation=10),
    event("cuda_runtime", "cudaStreamIsCapturing", 2_000_022_500, 100, correlation=11),
    event("cuda_driver", "cuLaunchKernelEx", 2_000_023_000, 100, correlation=12),
    event("cpu_op", "aten::add_", 2_000_000_000, 100),
]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "profile.json"
    content = envelope(path)
    content["traceEvents"] += EVENTS
    content["deviceProperties"] = [{"id": 0, "name": "NVIDIA Test"}]
    path.write_text(json.dumps(content))
    return path


def test_events_become_spans_on_their_lanes(path):
    trace = load_profile_trace(path)
    found = {(span.name, span.kind, span.lane, span.stream) for span in trace.spans if span.lane != "CPU"}
    assert found == {
        ("void gemm<float>(int)", "kernel", "compute", "stream 7"),
        ("triton_red_fused", "kernel", "compute", "stream 7"),
        ("Memcpy DtoH (Device -> Pinned)", "copy", "D2H", "stream 11"),
        ("Memcpy HtoD (Pageable -> Device)", "copy", "H2D", "stream 12"),
        ("Memcpy DtoD (Device -> Device)", "copy", "compute", "stream 7"),
        ("Memset (Device)", "kernel", "compute", "stream 7"),
    }
    kinds = {span.name: span.kind for span in trace.lane("CPU")}
    assert kinds == {
        "cudaGraphLaunch": "launch",
        "cudaMemcpyAsync": "launch",
        "cuLaunchKernelEx": "launch",
        "cudaEventRecordWithFlags": "record",
        "cudaStreamWaitEvent": "wait",
        "cudaEventSynchronize": "synchronize",
        "cudaEventQuery": "query",
        "cudaStreamIsCapturing": "call",
    }
    assert {span.kind for span in trace.spans} <= KINDS and {span.lane for span in trace.spans} <= set(LANES)
    assert (trace.meta["source"], trace.meta["device"]) == ("profiler", "NVIDIA Test")


def test_times_are_whole_ns_from_the_first_cuda_event(path):
    spans = {span.name: span for span in load_profile_trace(path).spans}
    assert (spans["cudaGraphLaunch"].start_ns, spans["cudaGraphLaunch"].end_ns) == (0, 7_000)
    gemm = spans["void gemm<float>(int)"]
    assert (gemm.start_ns, gemm.end_ns, gemm.busy_ns) == (19_900, 22_901, 3_001)
    assert spans["Memcpy DtoH (Device -> Pinned)"].bytes == 256


def test_a_graph_launch_is_one_call_with_many_kernels(path):
    trace = load_profile_trace(path)
    names = {span.id: span.name for span in trace.spans}
    issued = {(names[edge.before], names[edge.after], edge.kind) for edge in trace.edges}
    assert issued == {
        ("cudaGraphLaunch", "void gemm<float>(int)", "issue"),
        ("cudaGraphLaunch", "triton_red_fused", "issue"),
        ("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pinned)", "issue"),
    }


def test_a_compressed_file_gives_the_same(path, tmp_path):
    packed = tmp_path / "profile.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert load_profile_trace(packed).spans == load_profile_trace(path).spans


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"traceEvents": 3}', '{"traceEvents": [{"ph": "X", "cat": "kernel"}]}']
)
def test_another_file_is_refused_by_name(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=r"other\.json.*torch\.profiler exported"):
        load_profile_trace(path)


def test_a_profile_without_a_gpu_says_what_to_ask_for(tmp_path):
    path = tmp_path / "cpu.json"
    envelope(path)
    with pytest.raises(InvalidArgument, match=r"ProfilerActivity\.CUDA"):
        load_profile_trace(path)


def test_a_device_event_was_issued_when_its_call_began(path):
    issued = {span.name: span.issued_ns for span in load_profile_trace(path).spans if span.lane != "CPU"}
    assert issued["void gemm<float>(int)"] == issued["triton_red_fused"] == 0, "both by the graph launch"
    assert issued["Memcpy DtoH (Device -> Pinned)"] == 7_900
    assert issued["Memset (Device)"] == 27_900, "its call is not in the file: its own start"


def test_a_gap_between_two_kernels_of_a_graph_is_not_the_hosts(path):
    gaps = [gap for gap in idle_gaps(load_profile_trace(path)) if gap.duration_ns == 499]
    assert [gap.reason for gap in gaps] == [LAUNCH]
