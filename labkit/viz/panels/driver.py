"""Keeps a panel moving inside the kernel's own event loop, in small slices, and stops it with its cell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_LEAST_S = 0.03  # between two slices: the kernel answers meanwhile


class Driver:
    """Calls ``beat`` again and again. Each call returns the seconds until the next one is due.

    Args:
        beat: one slice of work; its exceptions end the driving.
        failed: told of such an exception.
    """

    def __init__(self, beat: Callable[[], float], failed: Callable[[Exception], None]) -> None:
        self._beat, self._failed = beat, failed
        self._task: asyncio.Task[None] | None = None

    @property
    def going(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start, unless it is going.

        Raises:
            RuntimeError: no event loop runs here, as in a plain script.
        """
        if not self.going:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        """Stop after the slice that runs now, if one does."""
        if self._task is not None:
            with suppress(RuntimeError):  # its loop was closed, and the task with it
                self._task.cancel()
        self._task = None

    async def _run(self) -> None:
        while True:
            try:
                pause = self._beat()
            except Exception as error:
                self._failed(error)
                return
            await asyncio.sleep(max(_LEAST_S, pause))


def current_cell() -> str:
    """The id of the notebook cell that is running now, empty outside a notebook."""
    kernel = getattr(_shell(), "kernel", None)
    header = kernel.get_parent() if kernel is not None else {}
    return str(header.get("metadata", {}).get("cellId") or "")


def when_cell_runs_again(call: Callable[[], None]) -> Callable[[], None]:
    """Call once when the cell that is running now is run again. Returns what takes this back."""
    shell, cell = _shell(), current_cell()
    if shell is None or not cell:
        return lambda: None

    def before(info: Any) -> None:
        if info.cell_id == cell:
            forget()
            call()

    def forget() -> None:
        with suppress(ValueError):  # it has been taken back
            shell.events.unregister("pre_run_cell", before)

    shell.events.register("pre_run_cell", before)
    return forget


def _shell() -> Any:
    try:
        from IPython import get_ipython
    except ImportError:
        return None
    return get_ipython()
