"""Every error that labkit raises on purpose.

LabkitError
|-- InvalidArgument (ValueError)      an argument, its value, and what is allowed
|   |-- InvalidSwitches               an unknown switch or rung
|   `-- UnsafeSwitches                a combination that cannot be right, without unsafe=True
|-- RequestTooLarge (ValueError)      a request that the whole KV cache could not hold
|-- EngineClosed (RuntimeError)       a call on an engine after close()
|-- EngineFault (RuntimeError)        a step failed; __cause__ is the reason
|-- Cancelled (RuntimeError)          reading on from a stream whose request was cancelled
|-- MissingExtra (ImportError)        an optional dependency; names the extra to install
`-- DeviceError (RuntimeError)        what a CUDA call would answer
    |-- CaptureError                  illegal during, or because of, a graph capture (has .code)
    |-- Livelock                      the host polls an event and virtual time cannot pass
    `-- Deadlock                      the host waits for work that can never run
"""

from __future__ import annotations


class LabkitError(Exception):
    """Base of every error that labkit raises on purpose."""


class InvalidArgument(LabkitError, ValueError):
    """An argument is out of range; the message names it, its value and what is allowed."""

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        super().__init__(f"{argument}={value!r}: {allowed}")
        self.argument, self.value, self.allowed = argument, value, allowed


class InvalidSwitches(InvalidArgument):
    """An unknown switch, rung or setting."""


class UnsafeSwitches(InvalidArgument):
    """A combination that cannot be right, built without ``unsafe=True``."""


class RequestTooLarge(LabkitError, ValueError):
    """The request needs more KV blocks than the whole pool has."""


class EngineClosed(LabkitError, RuntimeError):
    """The engine was closed; build a new one."""


class EngineFault(LabkitError, RuntimeError):
    """A step failed; ``__cause__`` is the reason. The engine can be used again."""


class Cancelled(LabkitError, RuntimeError):
    """The request was cancelled."""


class MissingExtra(LabkitError, ImportError):
    """An optional dependency is missing; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'labkit[{extra}]'")
        self.package, self.extra = package, extra


class DeviceError(LabkitError, RuntimeError):
    """What a CUDA call would answer."""


class CaptureError(DeviceError):
    """A call that a graph capture forbids, or that a broken capture spoiled.

    ``code`` is CUDA's error number (cudaErrorStreamCapture..., 900 to 908), None for PyTorch's own checks.
    """

    def __init__(self, code: int | None, message: str) -> None:
        super().__init__(message if code is None else f"{message} (CUDA error {code})")
        self.code = code


class Livelock(DeviceError):
    """The host polls and virtual time cannot pass (a query that costs nothing)."""


class Deadlock(DeviceError):
    """The host waits for work that can never run."""
