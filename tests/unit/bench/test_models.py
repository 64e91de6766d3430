"""Models to measure, by shape and form, and the bytes that a step must read."""

import pytest
import torch

from labkit.bench.models import bench_model, floor_ns, in_form, open_rig
from labkit.errors import DeviceError, InvalidArgument
from labkit.model.toy import ToyModel

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def tiny():
    from labkit.model.hf_shapes import load_shape

    return load_shape("tiny", dtype=torch.float32)


def test_the_virtual_gpu_runs_the_toy_model_whatever_is_asked_for():
    assert isinstance(bench_model("8b", "compiled", "virtual"), ToyModel)
    assert open_rig("virtual", "toy-u").device.profile.name == "toy-u"


def test_a_name_that_is_no_model_is_not_passed_over_on_the_virtual_gpu():
    from labkit.bench.models import VIRTUAL
    from labkit.model.hf_shapes import SHAPES

    assert set(SHAPES) <= set(VIRTUAL)
    with pytest.raises(InvalidArgument, match="model='nope'"):
        bench_model("nope", "hf", "virtual")


def test_forms_share_the_weights(tiny):
    assert in_form(tiny, "hf") is tiny
    fused = in_form(tiny, "fused")
    assert fused.module is tiny.module


def test_the_floor_counts_each_weight_once_and_every_token_of_the_context(tiny):
    # per layer: q, o of 256x256, k, v of 128x256, three of 512x256, two norms; then the last norm and the output matrix
    layer = 2 * 256 * 256 + 2 * 128 * 256 + 3 * 512 * 256 + 2 * 256
    weights = 4 * (2 * layer + 256 + 512 * 256)
    per_token = 4 * 2 * 2 * 2 * 64  # K and V, two layers, two heads of 64
    assert floor_ns(tiny, 3, 100, bandwidth=2.0) == (weights + 300 * per_token) / 2
    assert floor_ns(ToyModel(), 3, 100, bandwidth=2.0) == 0


def test_a_tied_embedding_is_the_output_matrix_and_counts():
    from labkit.model.decoder import HFModel
    from labkit.model.hf import random_model, tiny_llama_config

    config = tiny_llama_config()
    config.tie_word_embeddings = True
    tied = HFModel(random_model(config))
    weights = sum(p.numel() for p in tied.module.parameters())
    assert floor_ns(tied, 1, 0, bandwidth=4.0) == weights


def test_bad_names_are_named():
    with pytest.raises(InvalidArgument, match="form='fast'"):
        bench_model("8b", "fast", "virtual")
    with pytest.raises(InvalidArgument, match="device='tpu'"):
        open_rig("tpu")
    with pytest.raises(InvalidArgument, match="a model with weights"):
        bench_model("toy", "hf", "cuda")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_no_gpu_is_said():
    with pytest.raises(DeviceError, match="no CUDA GPU"):
        open_rig("cuda")
