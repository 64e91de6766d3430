"""Start reading at labkit/engine/loop.py. labkit teaches asynchronous continuous batching by switching it on."""

from labkit.device.costs import Profile, load_profile
from labkit.device.virtual import VirtualDevice
from labkit.doctor import doctor
from labkit.engine.request import Request, TokenEvent
from labkit.engine.sampling import SamplingParams
from labkit.entry import Engine, default_sizes
from labkit.errors import LabkitError
from labkit.run import Run
from labkit.sizes import Sizes
from labkit.switches import RUNG_NAMES, Switches, explain, ladder
from labkit.trace.events import Trace
from labkit.virtual_gpu import VirtualGPU

__all__ = [
    "RUNG_NAMES",
    "Engine",
    "LabkitError",
    "Profile",
    "Request",
    "Run",
    "SamplingParams",
    "Sizes",
    "Switches",
    "TokenEvent",
    "Trace",
    "VirtualDevice",
    "VirtualGPU",
    "default_sizes",
    "doctor",
    "explain",
    "ladder",
    "load_profile",
]

__version__ = "0.1.0"
