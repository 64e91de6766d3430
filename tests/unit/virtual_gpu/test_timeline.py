"""The timeline by stream, as text and as HTML."""

from __future__ import annotations

from html.parser import HTMLParser

import labkit


def program() -> labkit.VirtualGPU:
    gpu = labkit.VirtualGPU("zero")
    s = gpu.Stream()
    gpu.kernel("<A>", 50, fraction=0.5)
    gpu.kernel("B", 100, fraction=0.5, stream=s)
    gpu.host(40)
    gpu.synchronize()
    return gpu


def test_a_row_for_the_host_and_one_for_each_stream() -> None:
    timeline = program().timeline()
    rows = {name: [(span.name, span.start_ns, span.end_ns) for span in spans] for name, spans in timeline.rows.items()}
    assert list(rows) == ["host", "default", "stream 1"]
    assert rows["default"] == [("<A>", 0, 50_000)]
    assert rows["stream 1"] == [("B", 0, 100_000)]
    assert rows["host"] == [("host", 0, 40_000), ("host waits for the device", 40_000, 100_000)]


def test_the_text_draws_to_scale() -> None:
    lines = str(program().timeline()).splitlines()
    assert lines[0].endswith("100 us")
    drawn = {line.split()[0]: line.count("#") for line in lines[1:4]}
    assert drawn["default"] == 36
    assert lines[3].count("#") == 72
    assert "# B on stream 1: 0 to 100 us" in lines


def test_the_html_is_well_formed_and_escaped() -> None:
    class Tags(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []
            self.names: list[str] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert self.open.pop() == tag

        def handle_data(self, data: str) -> None:
            self.names.append(data)

    parser = Tags()
    parser.feed(program()._repr_html_())
    assert not parser.open
    assert "<A>" in parser.names
    assert "stream 1" in parser.names


def test_the_html_leaves_room_for_the_names_and_tells_the_times_of_a_few_operations() -> None:
    gpu = program()
    html = gpu._repr_html_()
    assert "table-layout:auto" in html
    assert "&lt;A&gt; on default: 0 to 50 us<br/>B on stream 1: 0 to 100 us</small>" in html
    for _ in range(9):
        gpu.kernel("more", 1)
    assert "more on default" not in gpu._repr_html_()


def test_an_empty_timeline_can_be_shown() -> None:
    timeline = labkit.VirtualGPU().timeline()
    assert "host" in str(timeline)
    assert "<table" in timeline._repr_html_()
