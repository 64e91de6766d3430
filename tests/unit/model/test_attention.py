"""The paged backends against attention written out over plain lists of keys."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import sys
from types import SimpleNamespace

import pytest
import torch

from labkit.model import flash
from labkit.model.api import BatchInputs, BatchShape
from labkit.model.attention import SdpaPaged, clamp_indices, write_kv
from labkit.model.flash import FlashPaged, _probe, choose
from labkit.model.kv_cache import pool_slots
from labkit.model.varlen import VarlenPaged

SIZE, KV_HEADS, BLOCKS = 8, 2, 24
ROWS = [(1, 9), (1, 1), (5, 12), (3, 3), (1, 6)]  # tokens in this step, context; the first two are decode rows


def make_batch(block_size: int, rows=ROWS, decode_rows: int = 2, context: int | None = None) -> BatchInputs:
    blocks = torch.randperm(BLOCKS, generator=torch.Generator().manual_seed(1)).tolist()
    tables = [[blocks.pop() for _ in range(-(-length // block_size))] for _, length in rows]
    columns = -(-32 // block_size)
    starts = [sum(count for count, _ in rows[:i]) for i in range(len(rows) + 1)]
    slots = [
        slot
        for (count, length), table in zip(rows, tables, strict=True)
        for slot in pool_slots(table, length - count, length, block_size)
    ]

    def ints(values: list) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int32)

    return BatchInputs(
        token_ids=ints([0] * starts[-1]),
        positions=ints([pos for count, length in rows for pos in range(length - count, length)]),
        slot_mapping=ints(slots),
        cu_seqlens_q=ints(starts),
        seq_lens=ints([length for _, length in rows]),
        block_table=ints([table + [BLOCKS] * (columns - len(table)) for table in tables]),
        output_index=ints([start - 1 for start in starts[1:]]),
        shape=BatchShape(
            rows=len(rows),
            tokens=starts[-1],
            decode_rows=decode_rows,
            max_chunk=max(count for count, _ in rows),
            context=context or max(length for _, length in rows),
        ),
    )


def run(backend, inputs: BatchInputs, query, kv, window=None) -> torch.Tensor:
    inputs = clamp_indices(inputs, kv[0])
    return backend.attend(query, kv, backend.plan(inputs, kv[0].shape[1]), SIZE**-0.5, window)


def random_case(block_size: int, group: int, poison: bool = True):
    """Queries, caches (NaN wherever no row has a token) and the keys and values of each row as plain tensors."""
    generator = torch.Generator().manual_seed(0)
    inputs = make_batch(block_size)
    query = torch.randn(inputs.shape.tokens, KV_HEADS * group, SIZE, generator=generator)
    kv = tuple(torch.full((BLOCKS + 1, block_size, KV_HEADS, SIZE), float("nan")) for _ in "kv")
    dense = []
    for row, (_, length) in enumerate(ROWS):
        slots = torch.tensor(pool_slots(inputs.block_table[row].tolist(), 0, length, block_size))
        pair = torch.randn(2, length, KV_HEADS, SIZE, generator=generator)
        write_kv(kv, slots, pair[0], pair[1])
        dense.append(pair)
    return inputs, query, kv, dense


def reference(query: torch.Tensor, dense, group: int, window: int | None) -> torch.Tensor:
    """Each query of each head on its own: softmax over the keys it sees, nothing padded, nothing masked."""
    outputs, token = [], 0
    for (count, length), (keys, values) in zip(ROWS, dense, strict=True):
        for pos in range(length - count, length):
            seen = slice(0 if window is None else max(0, pos + 1 - window), pos + 1)
            heads = []
            for head in range(query.shape[1]):
                scores = keys[seen, head // group] @ query[token, head] * SIZE**-0.5
                heads.append(scores.softmax(0) @ values[seen, head // group])
            outputs.append(torch.stack(heads))
            token += 1
    return torch.stack(outputs)


@pytest.mark.parametrize("window", [None, 1, 4])
@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("block_size", [4, 16])
def test_sdpa_equals_attention_written_out(block_size: int, group: int, window: int | None) -> None:
    inputs, query, kv, dense = random_case(block_size, group)
    torch.testing.assert_close(run(SdpaPaged(), inputs, query, kv, window), reference(query, dense, group, window))


@pytest.mark.parametrize("decode_rows", [0, 1])
def test_a_decode_row_may_come_as_a_prefill_chunk_of_one_token(decode_rows: int) -> None:
    inputs, query, kv, dense = random_case(4, 2)
    inputs = dataclasses.replace(inputs, shape=dataclasses.replace(inputs.shape, decode_rows=decode_rows))
    torch.testing.assert_close(run(SdpaPaged(), inputs, query, kv), reference(query, dense, 2, None))


def test_a_larger_context_bound_changes_nothing() -> None:
    inputs, query, kv, _ = random_case(4, 2)
    wider = dataclasses.replace(inputs, shape=dataclasses.replace(inputs.shape, context=1000))
    torch.testing.assert_close(run(SdpaPaged(), wider, query, kv), run(SdpaPaged(), inputs, query, kv))


def test_write_kv_writes_the_given_slots_and_no_other() -> None:
    kv = torch.zeros(3, 4, KV_HEADS, SIZE), torch.zeros(3, 4, KV_HEADS, SIZE)
    write_kv(kv, torch.tensor([9, 2]), torch.ones(2, KV_HEADS, SIZE), torch.full((2, KV_HEADS, SIZE), 5.0))
    assert kv[0].flatten(0, 1).sum((1, 2)).nonzero().flatten().tolist() == [2, 9]
    assert kv[1][2, 1].unique().tolist() == [5.0]


@pytest.mark.parametrize(("low", "high"), [(-50, 500), (0, 6)], ids=["wild", "plausible"])
@pytest.mark.parametrize("seed", range(6))
def test_indices_of_another_step_never_leave_the_tensors(seed: int, low: int, high: int) -> None:
    """Out-of-range indices raise on the CPU, so finishing with finite numbers shows that none was used."""
    inputs, query, kv, _ = random_case(4, 2)
    generator = torch.Generator().manual_seed(seed)
    garbage = {
        name: torch.randint(low, high, getattr(inputs, name).shape, generator=generator, dtype=torch.int32)
        for name in ("slot_mapping", "cu_seqlens_q", "seq_lens", "block_table", "output_index")
    }
    inputs = dataclasses.replace(inputs, **garbage)
    safe = clamp_indices(inputs, kv[0])
    for cache in kv:
        cache.nan_to_num_(0.0)
    write_kv(kv, safe.slot_mapping, query[:, :KV_HEADS], query[:, :KV_HEADS])
    out = run(SdpaPaged(), inputs, query, kv, window=2)
    assert out.shape == query.shape
    assert out.isfinite().all()
    assert all((part.query_pos >= 0).all() for part in SdpaPaged().plan(safe, 4))  # every query sees a key
    assert 0 <= safe.output_index.min() and safe.output_index.max() < inputs.shape.tokens


def test_padding_rows_of_a_graph_batch_are_finite_and_leave_other_rows_alone() -> None:
    inputs, query, kv, _ = random_case(4, 2)
    alone = make_batch(4, ROWS[:2])
    trash = BLOCKS * 4
    padded = dataclasses.replace(
        alone,
        slot_mapping=torch.cat([alone.slot_mapping, torch.tensor([trash, trash], dtype=torch.int32)]),
        cu_seqlens_q=torch.arange(5, dtype=torch.int32),
        seq_lens=torch.tensor([9, 1, 1, 1], dtype=torch.int32),
        block_table=torch.cat([alone.block_table, torch.full((2, 8), BLOCKS, dtype=torch.int32)]),
        shape=BatchShape(rows=4, tokens=4, decode_rows=4, max_chunk=1, context=32),
    )
    write_kv(kv, clamp_indices(padded, kv[0]).slot_mapping[2:], query[2:4, :KV_HEADS], query[2:4, :KV_HEADS])
    out = run(SdpaPaged(), padded, query[:4], kv)
    torch.testing.assert_close(out[:2], run(SdpaPaged(), alone, query[:2], kv))
    assert out.isfinite().all()


def test_nothing_reads_a_device_value() -> None:
    """Tensors on the meta device have shapes and no contents: an ``item``, ``nonzero`` or mask index would raise."""
    inputs, query, kv, _ = random_case(4, 2)
    tensors = {
        field.name: getattr(inputs, field.name).to("meta")
        for field in dataclasses.fields(inputs)
        if field.name != "shape"
    }
    meta_kv = tuple(cache.to("meta") for cache in kv)
    out = run(SdpaPaged(), dataclasses.replace(inputs, **tensors), query.to("meta"), meta_kv, window=4)
    assert out.shape == query.shape


@pytest.mark.parametrize(
    ("context", "limit", "bucket"),
    [(1, 2048, 128), (128, 2048, 128), (129, 2048, 256), (1500, 2000, 2000), (7, 64, 64)],
)
def test_context_bucket_is_a_power_of_two_within_the_limit(context: int, limit: int, bucket: int) -> None:
    assert SdpaPaged().context_bucket(context, limit) == bucket


def test_choose_on_the_cpu_says_why_it_is_not_flash() -> None:
    backend = choose(torch.device("cpu"), torch.float32, (4, 2, 64), 256)
    assert backend.name == "sdpa"
    assert backend.why == "flash-attn needs CUDA, the model is on cpu"


def test_the_probe_tells_a_backend_that_computes_something_else() -> None:
    class OffByOne(SdpaPaged):
        def plan(self, inputs: BatchInputs, block_size: int):
            return super().plan(dataclasses.replace(inputs, seq_lens=inputs.seq_lens - 1), block_size)

    sizes = torch.device("cpu"), torch.float32, (4, 2, 64), 16, None
    assert _probe(SdpaPaged(), *sizes) == 0
    assert _probe(OffByOne(), *sizes) > 0.05


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_decode_batch_is_captured_and_replayed_without_synchronising() -> None:
    _, query, kv, _ = random_case(16, 2)
    inputs = make_batch(16, ROWS[:2], context=32)
    tensors = {f.name: getattr(inputs, f.name).cuda() for f in dataclasses.fields(inputs) if f.name != "shape"}
    inputs, query, kv = dataclasses.replace(inputs, **tensors), query[:2].cuda(), tuple(cache.cuda() for cache in kv)
    expected = run(SdpaPaged(), inputs, query, kv)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.set_sync_debug_mode("error")
    try:
        run(SdpaPaged(), inputs, query, kv)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    with torch.cuda.graph(graph):
        out = run(SdpaPaged(), inputs, query, kv)
    graph.replay()
    torch.testing.assert_close(out, expected)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.skipif(importlib.util.find_spec("flash_attn") is None, reason="flash-attn is not installed")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_flash_equals_sdpa(dtype: torch.dtype) -> None:
    device = torch.device("cuda")
    assert _probe(FlashPaged(), device, dtype, (8, 2, 64), 256, None) < 0.05
    assert choose(device, dtype, (8, 2, 64), 256).name == "flash"
    refused = choose(device, dtype, (8, 2, 64), 16)
    assert refused.name != "flash" and "256" in refused.why


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_varlen_equals_sdpa_or_says_why_it_cannot_run() -> None:
    try:
        error = _probe(VarlenPaged(), torch.device("cuda"), torch.bfloat16, (8, 2, 64), 256, None)
    except (ImportError, RuntimeError) as failure:
        pytest.skip(f"no paged varlen_attn here: {failure}")
    assert error < 0.05


def varlen_written_out(
    query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, scale, window_size, enable_gqa, seqused_k, block_table
):
    """What PyTorch documents of ``varlen_attn`` with a block table, row by row."""
    assert cu_seq_k is None and window_size[1] == 0
    assert enable_gqa == (query.shape[1] != key.shape[2])
    assert max_k >= seqused_k.max()
    out = torch.full_like(query, float("nan"))
    for row, keys in enumerate(seqused_k.tolist()):
        start, stop = cu_seq_q[row : row + 2].tolist()
        assert stop - start <= max_q
        table = block_table[row].long()
        k, v = (
            cache[table].flatten(0, 1)[:keys].repeat_interleave(query.shape[1] // key.shape[2], 1)
            for cache in (key, value)
        )
        for token in range(start, stop):
            last = keys - (stop - token)
            first = 0 if window_size[0] < 0 else max(0, last - window_size[0])
            scores = torch.einsum("hd,khd->hk", query[token], k[first : last + 1]) * scale
            out[token] = torch.einsum("hk,khd->hd", scores.softmax(-1), v[first : last + 1])
    return out


@pytest.fixture
def written_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.nn.attention.varlen", SimpleNamespace(varlen_attn=varlen_written_out))


@pytest.mark.parametrize("window", [None, 1, 4])
@pytest.mark.parametrize("group", [1, 3])
def test_varlen_is_asked_for_what_sdpa_computes(written_out, group: int, window: int | None) -> None:
    inputs, query, kv, dense = random_case(4, group)
    torch.testing.assert_close(run(VarlenPaged(), inputs, query, kv, window), reference(query, dense, group, window))


def test_varlen_without_a_block_table_is_refused(monkeypatch) -> None:
    for module in (SimpleNamespace(varlen_attn=lambda query, key, value: None), SimpleNamespace()):
        monkeypatch.setitem(sys.modules, "torch.nn.attention.varlen", module)
        with pytest.raises(ImportError, match=r"block table|has no varlen_attn"):
            VarlenPaged()


def on_a_gpu(monkeypatch) -> SimpleNamespace:
    """A device that says cuda, whose probes run on the CPU."""
    probe = flash._probe
    monkeypatch.setattr(flash, "_probe", lambda backend, device, *sizes: probe(backend, torch.device("cpu"), *sizes))
    return SimpleNamespace(type="cuda")


def test_varlen_comes_after_flash_attn_and_before_sdpa(monkeypatch, written_out) -> None:
    monkeypatch.setitem(sys.modules, "flash_attn", None)
    chosen = choose(on_a_gpu(monkeypatch), torch.float32, (4, 2, 8), 16)
    assert chosen.name == "varlen"
    assert chosen.why.startswith("flash-attn does not work here") and chosen.why.endswith("varlen_attn works here")


def test_a_varlen_that_is_off_is_not_taken(monkeypatch) -> None:
    def off(*args, **options):
        return varlen_written_out(*args, **options) + 1

    off.__signature__ = inspect.signature(varlen_written_out)
    monkeypatch.setitem(sys.modules, "flash_attn", None)
    monkeypatch.setitem(sys.modules, "torch.nn.attention.varlen", SimpleNamespace(varlen_attn=off))
    chosen = choose(on_a_gpu(monkeypatch), torch.float32, (4, 2, 8), 16)
    assert chosen.name == "sdpa"
    assert "varlen_attn's result is off by" in chosen.why
