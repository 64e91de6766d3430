"""Models to measure, in the forms that they can run in."""

from __future__ import annotations

from labkit.device.calibrate.rig import Rig, VirtualRig
from labkit.device.costs import Profile
from labkit.device.virtual import VirtualDevice
from labkit.errors import InvalidArgument
from labkit.model.api import Model
from labkit.model.kv_cache import block_bytes
from labkit.model.toy import ToyModel

FORMS = ("hf", "fused", "compiled")  # transformers' modules; merged projections; the same through torch.compile
VIRTUAL = ("toy", "tiny", "135m", "1b", "8b", "llama-8b")  # names that stand for the toy model on the virtual GPU
LONGEST = 262144  # tokens, of the toy model that stands in on the virtual GPU


def open_rig(device: str, profile: str | Profile = "h200-8b") -> Rig:
    """The device on the bench.

    Raises:
        InvalidArgument: another name. DeviceError: "cuda" where there is no GPU.
    """
    if device == "virtual":
        return VirtualRig(VirtualDevice(profile))
    if device == "cuda":
        from labkit.device.cuda_rig import CudaRig

        return CudaRig()
    raise InvalidArgument("device", device, '"virtual" or "cuda"')


def bench_model(name: str, form: str, device: str) -> Model:
    """A model on a device; on the virtual GPU, whose profile is the model, the toy model.

    ``name`` is a shape (135m, 1b, 8b, tiny), toy, or what ``labkit.model.load_model`` takes.

    Raises:
        InvalidArgument: no such model or form, or a form that it does not have.
    """
    if form not in FORMS:
        raise InvalidArgument("form", form, f"one of {', '.join(FORMS)}")
    if device == "virtual":
        if name not in VIRTUAL:
            allowed = f"one of {', '.join(VIRTUAL)}; on the virtual GPU the profile is the model"
            raise InvalidArgument("model", name, allowed)
        return ToyModel(max_model_len=LONGEST)
    return in_form(_load(name), form)


def in_form(model: Model, form: str) -> Model:
    """A model of transformers' modules in another form, on the same weights."""
    if form == "hf":
        return model
    from labkit.model.fused import FusedModel

    return FusedModel(model, compiled=form == "compiled")  # type: ignore[arg-type]


def _load(name: str) -> Model:
    import torch

    from labkit.model import load_model

    if name == "toy":
        raise InvalidArgument("model", name, "a model with weights, on a real GPU")
    from labkit.model.hf_shapes import SHAPES, load_shape

    shape = {"llama-8b": "8b"}.get(name, name)
    if shape in SHAPES:
        return load_shape(shape, "cuda")
    return load_model(name, dtype=torch.bfloat16, device="cuda")


def floor_ns(model: Model, batch: int, context: int, bandwidth: float) -> float:
    """What reading the bytes of a decode step takes, in ns; 0 for a model without weights.

    The weights once (of an embedding that is not the output matrix a few rows, not counted) and K and V of the whole
    context, at ``bandwidth`` bytes per ns.
    """
    module = getattr(model, "module", None)
    if module is None:
        return 0.0
    weights = sum(p.numel() * p.element_size() for p in module.parameters())
    embedding = module.model.embed_tokens.weight
    if module.lm_head.weight is not embedding:
        weights -= embedding.numel() * embedding.element_size()
    total: int = weights + batch * context * block_bytes(model.kv_specs(), 1)
    return total / bandwidth
