"""Colours that can be read and told apart, by everyone."""

from itertools import combinations, pairwise

import pytest

from labkit.viz import style
from tests.unit.viz.contrast import VISIONS, contrast, distance

LANES = {"CPU": style.CPU, "H2D": style.H2D, "compute": style.COMPUTE, "D2H": style.D2H, "idle": style.IDLE}
APART = 15  # CIELAB; just noticeable is 2.3


def test_the_measures_know_black_white_and_the_confusions_of_each_vision():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)
    assert distance("#000000", "#FFFFFF") == pytest.approx(100, abs=0.1)
    # Red and green of one lightness, and blue and green, are far apart for most and near for some.
    assert distance("#C00000", "#506600") > 60
    assert distance("#C00000", "#7A6A00", "deutan") < distance("#C00000", "#7A6A00") / 2
    assert distance("#0087B5", "#008A7A", "tritan") < distance("#0087B5", "#008A7A") / 2


@pytest.mark.parametrize("vision", VISIONS)
def test_the_lanes_are_distinct_under_every_colour_vision(vision):
    for (one, first), (other, second) in combinations(LANES.items(), 2):
        assert distance(first, second, vision) >= APART, f"{one} and {other}"


@pytest.mark.parametrize("vision", VISIONS)
def test_the_phases_are_distinct_from_their_neighbours_in_a_step(vision):
    phases = [style.LOOKS[name].fill for name in ("plan", "fill", "upload", "compute", "download", "settle")]
    for before, after in pairwise(phases):
        assert distance(before, after, vision) >= 8


@pytest.mark.parametrize("kind", [*style.LOOKS, "phase", "operation"])
def test_text_on_a_bar_is_readable(kind):
    look = {"phase": style.OTHER_PHASE, "operation": style.OTHER_OPERATION}.get(kind) or style.LOOKS[kind]
    ground = style.PAPER if look.hatch else look.fill
    needed = 4.5 if style.LABEL < 18 else 3  # WCAG 2.2, 1.4.3: 3 is enough for large text
    assert contrast(ground, look.text) >= needed


def test_what_is_hard_to_see_on_paper_has_a_dark_outline_or_a_hatch():
    for name, look in style.LOOKS.items():
        if look.section == "GPU" and not look.hatch and contrast(look.fill, style.PAPER) < 2.8:
            assert contrast(look.outline, style.PAPER) >= 3, name
    assert contrast(style.INK, style.PAPER) >= 7


def test_slots_of_a_step_have_hatches_of_their_own():
    assert len(set(style.SLOT_HATCHES)) == len(style.SLOT_HATCHES) >= 2


def test_the_smallest_text_is_readable_from_afar():
    assert min(style.TITLE, style.LANE, style.AXIS, style.LEGEND, style.NOTE, style.LABEL) >= 15
