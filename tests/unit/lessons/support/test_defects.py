"""The defects: each is one part, and no text gives it away."""

from __future__ import annotations

from labkit.lessons.support.defects import DEFECTS, WORKED
from labkit.lessons.support.parts import RIGHT


def test_ten_defects_of_parts_that_exist():
    assert len(DEFECTS) == 10
    for defect in (*DEFECTS, WORKED):
        assert defect.broken and set(defect.broken) <= set(RIGHT)
        assert all(part is not RIGHT[name] for name, part in defect.broken.items())


def test_each_case_is_another_one():
    assert len({defect.title for defect in DEFECTS}) == len({defect.ticket for defect in DEFECTS}) == 10
    broken = [(name, part.__name__) for defect in DEFECTS for name, part in defect.broken.items()]
    assert len(broken) == len(set(broken)) == 11, "one of them moved what one part does to another part"


def test_neither_title_nor_ticket_names_the_part():
    for defect in DEFECTS:
        text = f"{defect.title} {defect.ticket}"
        assert not any(name in text for name in RIGHT)
