"""transformers' generate_batch as a peer: what is asked of it, and what counts as its step."""

from types import SimpleNamespace

import pytest

pytest.importorskip("transformers")

from labkit.errors import DeviceError
from labkit.model import hf_peer


class Module:
    """Answers as ``generate_batch`` does."""

    def __init__(self, tokens=None):
        self.attention, self.asked, self.tokens = None, [], tokens

    def set_attn_implementation(self, name):
        self.attention = name

    def generate_batch(self, inputs, generation_config, continuous_batching_config, progress_bar):
        count = generation_config.max_new_tokens
        self.asked.append((count, generation_config.do_sample, continuous_batching_config.use_async_batching))
        output = SimpleNamespace(generated_tokens=[1] * (self.tokens or count))
        return {str(i): output for i in range(len(inputs))}


@pytest.mark.parametrize("use_async", [True, False])
def test_a_run_is_greedy_and_of_the_loop_asked_for(use_async):
    module = Module()
    assert hf_peer.peer_seconds(module, [[1, 2]] * 3, 7, use_async=use_async) >= 0
    assert module.asked == [(7, False, use_async)]


def test_a_run_that_ends_early_is_an_error():
    with pytest.raises(DeviceError, match=r"gave \[5\] tokens for 3 of 3 prompts"):
        hf_peer.peer_seconds(Module(tokens=5), [[1, 2]] * 3, 7, use_async=True)


def test_a_step_is_the_difference_of_two_runs(monkeypatch):
    asked = []

    def seconds(module, prompts, new_tokens, *, use_async):
        asked.append(new_tokens)
        return 3.0 + 0.009 * new_tokens

    monkeypatch.setattr(hf_peer, "peer_seconds", seconds)
    module = Module()
    assert hf_peer.peer_step_ns(module, [[1]], 100, use_async=True) == pytest.approx(9e6)
    assert asked == [8, 8, 108], "the first is a warm-up"
    assert module.attention == "flash_attention_2"
    hf_peer.peer_step_ns(module, [[1]], 100, use_async=True, warm_up=False)
    assert asked[3:] == [8, 108]
