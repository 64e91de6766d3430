"""Numbers as a reader wants them: the one place where ns become microseconds in a text."""

from __future__ import annotations


def time_text(ns: float) -> str:
    """A duration with three significant digits or more: ``850 ns``, ``12.3 µs``, ``4.567 ms``, ``1.234 s``."""
    for limit, unit, digits in ((1_000, "ns", 0), (1_000_000, "µs", 1), (1_000_000_000, "ms", 3)):
        if abs(ns) < limit:
            return f"{ns * 1_000 / limit:.{digits}f} {unit}"
    return f"{ns / 1e9:.3f} s"


def bytes_text(count: float) -> str:
    """``512 B``, ``1.5 KiB``, ``3.0 MiB``, ``2.0 GiB``."""
    for unit in ("B", "KiB", "MiB"):
        if abs(count) < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def share_text(share: float) -> str:
    """A share of 1 in percent, one decimal."""
    return f"{share * 100:.1f} %"
