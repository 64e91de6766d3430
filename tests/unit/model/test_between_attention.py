"""The functions around attention, one by one; all of them together are in test_fused.py."""

import pytest
import torch

from labkit.model.between_attention import begin, product
from labkit.model.hf import load


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_embeddings_and_angles_are_those_of_the_modules_bit_by_bit(dtype):
    base = load("tiny-llama", dtype=dtype)
    model, ids, positions = base.module.model, torch.tensor([3, 0, 250]), torch.tensor([0, 7, 8191])
    limits = (base.vocab_size, 8192, model.rotary_emb.attention_scaling)
    x, cos, sin = begin(ids, positions, model.embed_tokens.weight, model.rotary_emb.inv_freq, limits)
    there = model.rotary_emb(x[None], positions[None])
    assert torch.equal(x, model.embed_tokens(ids))
    assert torch.equal(cos, there[0][0]) and torch.equal(sin, there[1][0])
    assert cos.dtype == sin.dtype == dtype


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("rows", [16, 32, 64, 65])
def test_products_of_one_kernel_are_the_plain_products(rows):
    generator = torch.Generator("cuda").manual_seed(0)
    x = torch.randn(rows, 256, generator=generator, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(128, 256, generator=generator, device="cuda", dtype=torch.bfloat16)
    zeros = torch.zeros(128, device="cuda", dtype=torch.bfloat16)
    wanted = x.double() @ weight.double().t()
    compiled = torch.compile(product, dynamic=False, fullgraph=True)
    for either in (product, compiled):
        assert (either(x, weight, zeros).double() - wanted).abs().max() < 2**-8 * wanted.abs().max()


def test_a_product_on_the_cpu_is_the_plain_one() -> None:
    x, weight = torch.randn(32, 8), torch.randn(4, 8)
    assert torch.equal(product(x, weight, torch.full((4,), torch.nan)), torch.nn.functional.linear(x, weight))
