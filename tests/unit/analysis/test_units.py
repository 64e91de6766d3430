import pytest

from labkit.analysis.units import bytes_text, share_text, time_text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (850, "850 ns"),
        (12_340, "12.3 µs"),
        (4_567_000, "4.567 ms"),
        (1_234_000_000, "1.234 s"),
        (-2000, "-2.0 µs"),
    ],
)
def test_time_has_the_unit_that_keeps_it_short(ns, text):
    assert time_text(ns) == text


@pytest.mark.parametrize(
    ("count", "text"), [(512, "512 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (2 << 30, "2.0 GiB")]
)
def test_bytes(count, text):
    assert bytes_text(count) == text


def test_share():
    assert share_text(0.7634) == "76.3 %"
