"""What the benchmarks for a real GPU work out from what they measure, on made-up measurements."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from labkit.model.hf import llama_8b_config, load
from labkit.trace.profiler import load_profile_trace
from tests.unit.profiles import event

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
LAYERS = 2
LAYER = [
    "nvjet_tst_64x32_v_bz_splitK_TNT",
    "void cublasLt::splitKreduce_kernel<32, 16>",
    "triton_poi_fused_add_cat_index_put_mul_2",
    "void flash::flash_fwd_splitkv_kernel<cutlass::bfloat16_t>",
    "nvjet_tst_64x16_h_bz_TNT",
    "triton_red_fused_add_mean_rsqrt",
    "nvjet_tst_128x32_h_bz_TNT",
    "triton_poi_fused_mul_silu",
    "sm90_xmma_gemm_bf16bf16_bf16f32",
    "triton_red_fused_add_mean_rsqrt",
]
FIRST = ["Memset (Device)", "void gemmSN_NN_kernel<float>", "triton_red_fused_mean_rsqrt"]
LAST = ["nvjet_tst_192x32_h_bz_TNT", "void at::native::reduce_kernel<ArgMaxOps>"]


def load_benchmark(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        try:
            return importlib.import_module(name)
        finally:
            for own in (name, "gpu_common"):
                sys.modules.pop(own, None)


def profile(tmp_path, *, steps=3, linked=True, layer=LAYER):
    """Graph launches of so many kernels, each 2 us long with 0.5 us before it, 1 us a host call."""
    events, at = [], 1_000_000
    for step in range(steps):
        events.append(event("cuda_runtime", "cudaGraphLaunch", at, 1_000, correlation=step))
        events.append(event("cuda_runtime", "cudaEventRecordWithFlags", at + 1_000, 1_000, correlation=1000 + step))
        for name in [*FIRST, *layer * LAYERS, *LAST]:
            at += 2_500
            category = "gpu_memset" if name.startswith("Memset") else "kernel"
            events.append(event(category, name, at, 2_000, stream=7, correlation=step if linked else 5000))
        at += 10_000
    path = tmp_path / "profile.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return load_profile_trace(path)


@pytest.mark.parametrize("linked", [True, False], ids=["launch known", "launch not known"])
def test_kernels_are_grouped_by_their_place_in_the_step(tmp_path, capsys, linked):
    bench = load_benchmark("kernel_groups")
    steps = bench.graph_steps(profile(tmp_path, linked=linked), 3)
    assert [len(step) for step in steps] == [len(FIRST) + LAYERS * len(LAYER) + len(LAST)] * 3
    found = bench.groups(steps[1], LAYERS)
    qkv, o, gate_up, down = bench.MATRICES
    in_layer = [qkv, qkv, bench.WRITE, bench.ATTENTION, o, bench.BETWEEN, gate_up, bench.BETWEEN, down, bench.BETWEEN]
    assert found == [bench.COPIES, bench.START, bench.START, *in_layer * LAYERS, bench.HEAD, bench.END]
    assert ("equal parts" in capsys.readouterr().out) != linked


def test_products_that_do_not_add_up_are_not_named(tmp_path):
    bench = load_benchmark("kernel_groups")
    steps = bench.graph_steps(profile(tmp_path, layer=LAYER[:4]), 3)
    found = bench.groups(steps[0], LAYERS)
    assert not set(bench.MATRICES) & set(found)
    assert any("4 products, not 9" in group for group in found)


def test_groups_sum_to_the_kernels_and_gaps_to_the_step(tmp_path):
    bench = load_benchmark("kernel_groups")
    steps = bench.graph_steps(profile(tmp_path), 3)
    head, *lines = bench.rows_of(steps, 0.1, {bench.HEAD: 8000}, 4.0, LAYERS)
    rows = {line[0]: line[1:] for line in lines}
    kernels = len(FIRST) + LAYERS * len(LAYER) + len(LAST)
    assert rows["all kernels"][0] == kernels
    assert rows["all kernels"][1] == pytest.approx(kernels * 0.002)
    assert sum(ms for name, (_, ms, *_) in rows.items() if name in bench.MATRICES) == pytest.approx(10 * 0.002)
    assert rows[bench.HEAD][2] == pytest.approx(0.002), "8000 bytes at 4 bytes per ns"
    assert rows["gaps and the rest"][1] == pytest.approx(0.1 - kernels * 0.002)
    assert bench.calls_per_step(profile(tmp_path), 3) == "cudaGraphLaunch 1, cudaEventRecordWithFlags 1"


def test_bytes_of_the_8b_shape():
    bench = load_benchmark("kernel_groups")
    module = SimpleNamespace(config=llama_8b_config(), dtype=torch.bfloat16)
    found = bench.floors(SimpleNamespace(module=module), 32, 4096)
    weights = sum(size for group, size in found.items() if group != bench.ATTENTION)
    assert weights == 2 * (8_030_261_248 - 128256 * 4096 - 65 * 4096), "all parameters but the embedding and the norms"
    assert found[bench.ATTENTION] == 32 * 4096 * 128 * 1024, "128 KiB of K and V a token"


def test_where_tokens_part_and_how_far_their_logits_are_apart():
    bench = load_benchmark("smollm2_on_gpu")
    assert list(bench.divergences([[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 9, 6]])) == [(1, 1)]
    model = load("tiny-llama")
    logits = model.module(torch.tensor([[5, 6, 7]])).logits[0, -1]
    best, second = logits.topk(2).indices.tolist()
    narrow = load("tiny-llama", dtype=torch.bfloat16)
    found = bench.gap(narrow, model, [5, 6, 7], second, best)
    assert found.apart == pytest.approx((logits[best] - logits[second]).item(), abs=1e-6)
    top = logits[best].bfloat16()
    assert found.spacing == (torch.nextafter(top, top + 1) - top).item()
    assert 0 < found.error < 0.5
    assert bench.gap(model, model, [5, 6, 7], second, best).error == 0


def test_shares_of_wrong_tokens():
    bench = load_benchmark("wrong_rungs_on_gpu")
    assert bench.share_wrong([[1, 2], [3, 4]], [[1, 2], [3, 5]]) == 0.25
    model = bench.load("toy")
    reference = bench.generate(model, 0, "virtual")
    wrong, right, errors, shares = bench.outcomes(model, 4, "virtual", 2, reference)
    assert (wrong, right, errors) == (2, 0, 0)
    assert shares[0] == shares[1] > 0.5, "the virtual GPU is wrong the same way every time"
