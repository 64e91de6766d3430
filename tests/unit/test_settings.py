"""``key=value`` texts."""

import pytest

from labkit.errors import InvalidArgument
from labkit.settings import Settings, parse_settings


def test_nothing():
    assert parse_settings([]) == Settings({}, {}, {})


def test_keys_are_sorted_into_switches_sizes_and_sampling():
    settings = parse_settings(["streams=on", "max_rows=4", "temperature=0.5", "seed=3", "compiled=no", "logprobs=true"])
    assert settings.switches == {"streams": True, "compiled": False}
    assert settings.sizes == {"max_rows": 4}
    assert settings.sampling == {"temperature": 0.5, "seed": 3, "logprobs": True}


def test_end_of_sequence_ids():
    assert parse_settings(["eos_token_ids=2,7"]).sampling == {"eos_token_ids": (2, 7)}
    assert parse_settings(["eos_token_ids="]).sampling == {"eos_token_ids": ()}


@pytest.mark.parametrize(("word", "value"), [("1", True), ("TRUE", True), ("Yes", True), ("0", False), ("Off", False)])
def test_words_for_a_switch(word, value):
    assert parse_settings([f"lookahead={word}"]).switches == {"lookahead": value}


def test_the_last_of_two_wins():
    assert parse_settings(["max_rows=4", "max_rows=5"]).sizes == {"max_rows": 5}


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("streams", "-s='streams': write key=value"),
        ("", "-s='': write key=value"),
        ("stream=on", "-s='stream': the settings are streams, events, .*max_rows.*temperature"),
        ("=3", "-s='': the settings are"),
        ("streams=maybe", "streams='maybe': true or false"),
        ("streams=", "streams='': true or false"),
        ("max_rows=four", "max_rows='four': an integer"),
        ("max_rows=4.0", "max_rows='4.0': an integer"),
        ("temperature=hot", "temperature='hot': a number"),
        ("eos_token_ids=a", "eos_token_ids='a': an integer"),
    ],
)
def test_what_is_wrong_is_named(pair, message):
    with pytest.raises(InvalidArgument, match=message):
        parse_settings([pair])
