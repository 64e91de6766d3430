"""The file: equal after a round trip, and by the rules of the format that viewers rely on."""

import gzip
import json
from collections import defaultdict

import pytest

from labkit.errors import InvalidArgument
from labkit.trace.events import Edge, GraphNode, Span, Touch, Trace
from labkit.trace.export import load_chrome, save_chrome, to_chrome
from tests.unit.synthetic import async_trace, sync_trace

ODD = Trace(
    (
        Span(7, "kernel", "k", "compute", 3, 1_234_567_890_123_456_789, busy_ns=1, stream="s"),
        Span(2, "host_write", "", "CPU", 5, 5, reads=(Touch("b", 0, 8, "pinned", 3),), writes=(), rows=2, tokens=9),
        Span(3, "copy", 'a "quoted" </script> µ', "H2D", -4, 9, blocking=True, source="f.py:1", bytes=12),
    ),
    (Edge(3, 7, "event", "e"), Edge(2, 99, "issue")),
    {"switches": ("streams", True), "rate": float("inf"), "sizes": {1: (2, [3])}, "$odd": None},
    {
        "decode A 8": (
            GraphNode("a", "compute"),
            GraphNode("b", "D2H", (Touch("x", 0, 4, "device", 1),), (), (0,), "f.py:3"),
        )
    },
)
OVERLAPPING = Trace(
    tuple(Span(n, "kernel", f"k{n}", "compute", 10 * n, 10 * n + 25, stream="ab"[n % 2]) for n in range(6)),
    (Edge(0, 3, "event", "e"),),
)
TRACES = {"sync": sync_trace(), "async": async_trace(), "odd": ODD, "overlapping": OVERLAPPING, "empty": Trace(())}
every_trace = pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES.keys())


@every_trace
@pytest.mark.parametrize("name", ["run.json", "run.json.gz"])
def test_a_round_trip_gives_the_same_trace(trace, name, tmp_path):
    save_chrome(trace, tmp_path / name)
    assert load_chrome(tmp_path / name) == trace


def test_the_method_writes_the_same_file(tmp_path):
    sync_trace().save(str(tmp_path / "a.json.gz"))
    save_chrome(sync_trace(), tmp_path / "b.json.gz")
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert json.loads(gzip.decompress((tmp_path / "a.json.gz").read_bytes())) == to_chrome(sync_trace())


def test_threads_are_named_and_ordered():
    events = [event for event in to_chrome(async_trace())["traceEvents"] if event["ph"] == "M"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    order = {event["tid"]: event["args"]["sort_index"] for event in events if event["name"] == "thread_sort_index"}
    shown = [names[tid] for tid in sorted(order, key=order.__getitem__)]
    assert shown == ["CPU phases", "CPU calls", "H2D", "compute", "D2H"]
    assert [event["args"]["name"] for event in events if event["name"] == "process_name"] == ["labkit"]


def test_a_slice_has_microseconds_with_ns_and_what_a_reader_filters_by():
    event = next(e for e in to_chrome(ODD)["traceEvents"] if e["ph"] == "X" and e["cat"] == "copy")
    assert (event["ts"], event["dur"]) == (-0.004, 0.013)
    first = next(e for e in to_chrome(async_trace())["traceEvents"] if e["ph"] == "X" and e["cat"] == "kernel")
    assert first["args"]["stream"] == "compute"
    assert first["args"]["source"] == "loop.py:40"
    assert first["args"]["reads"] == [["inputs A", 0, 4096, "device", 0]]
    assert (first["args"]["step"], first["args"]["slot"]) == (0, "A")


def by_thread(trace: Trace) -> dict[int, list[dict]]:
    threads = defaultdict(list)
    for event in to_chrome(trace)["traceEvents"]:
        if event["ph"] != "M":
            threads[event["tid"]].append(event)
    return threads


@pytest.mark.parametrize("name", ["sync", "async", "overlapping"])
def test_slices_of_one_thread_nest(name):
    for events in by_thread(TRACES[name]).values():
        ends: list[int] = []
        for args in (event["args"] for event in events if event["ph"] == "X"):
            while ends and ends[-1] <= args["start_ns"]:
                ends.pop()
            assert not ends or args["end_ns"] <= ends[-1]
            ends.append(args["end_ns"])


@pytest.mark.parametrize("name", ["sync", "async", "overlapping"])
def test_arrows_bind_to_the_slices_of_their_edge(name):
    """As a viewer does it: read in file order, an arrow binds to the last slice that was opened on its thread."""
    trace, last, bound = TRACES[name], {}, {}
    previous = float("-inf")
    for event in (e for e in to_chrome(trace)["traceEvents"] if e["ph"] != "M"):
        assert event["ts"] >= previous
        previous = event["ts"]
        if event["ph"] == "X":
            last[event["tid"]] = event
        else:
            slice_ = last[event["tid"]]
            assert slice_["ts"] <= event["ts"] < slice_["ts"] + slice_["dur"]
            assert event["ph"] == "s" or event["bp"] == "e"
            bound.setdefault((event["id"], event["cat"], event["name"]), []).append(slice_["args"]["id"])
    assert sorted(bound.values()) == sorted([edge.before, edge.after] for edge in trace.edges)
    assert len(bound) == len(trace.edges) > 0


def test_the_whole_is_strict_json():
    text = json.dumps(to_chrome(ODD), allow_nan=False)
    assert json.loads(text)["displayTimeUnit"] == "ns"


def test_meta_that_json_cannot_keep_is_refused():
    with pytest.raises(InvalidArgument, match=r"trace\.meta"):
        to_chrome(Trace((), (), {"device": object()}))


def damaged(change) -> str:
    data = json.loads(json.dumps(to_chrome(sync_trace())))
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        '{"traceEvents": []}',
        damaged(lambda data: data["labkit"].update(version=99)),
        damaged(lambda data: data["traceEvents"][-1].pop("ph")),
        damaged(lambda data: [event.get("args", {}).update(kind="magic") for event in data["traceEvents"]]),
        damaged(lambda data: [event.get("args", {}).update(start_ns="0") for event in data["traceEvents"]]),
        damaged(lambda data: [event.get("args", {}).pop("end_ns", 0) for event in data["traceEvents"]]),
        damaged(lambda data: data["labkit"]["edges"].append([1])),
    ],
)
def test_another_file_is_refused_by_name(text, tmp_path):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=r"other\.json.*save_chrome"):
        load_chrome(path)


def test_a_cut_gz_file_is_refused_and_a_missing_one_is_missing(tmp_path):
    save_chrome(sync_trace(), tmp_path / "run.json.gz")
    data = (tmp_path / "run.json.gz").read_bytes()
    (tmp_path / "cut.json.gz").write_bytes(data[: len(data) // 2])
    with pytest.raises(InvalidArgument, match="cut"):
        load_chrome(tmp_path / "cut.json.gz")
    with pytest.raises(FileNotFoundError):
        load_chrome(tmp_path / "missing.json")
