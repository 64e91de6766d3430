"""Graph capture on the virtual GPU: what it forbids, with CUDA's error codes, and what becomes of events and streams.

    900  a call that a capture forbids          905  a captured stream waits for an event recorded outside
    901  the capture was invalidated before     906  the default stream, while a blocking stream is captured
    902  it would join two captures             907  asking about an event recorded inside the capture
    904  a forked stream never came back        908  the capture ends in another thread than it began in
    1    an event whose latest record was inside a capture, used after it

An illegal call invalidates the capture it concerns (semantics, 46 to 51 and 59).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from labkit.device.api import Event, Graph, Stream
from labkit.device.virtual.core import Core
from labkit.device.virtual.graphs import Capture, ExecutableGraph, Node
from labkit.errors import CaptureError, InvalidArgument

MODES = ("global", "thread_local", "relaxed")


class Capturing(Core):
    """Beginning, spoiling and ending captures."""

    @contextmanager
    def capture(
        self, name: str, stream: Stream, pool: Any = None, *, mode: str = "global", synchronize: bool = True
    ) -> Iterator[Graph]:
        """Record what is enqueued on ``stream``, and on streams that wait for it, instead of running it.

        Raises:
            CaptureError: on the default stream, during another capture, or at the end of one that went wrong.
        """
        if self._captures:
            raise CaptureError(None, "another capture is under way: one at a time in a process")
        if synchronize:
            self.wait_for_device()
        self.begin_capture(stream, mode)
        graph = Graph(name, self)  # type: ignore[arg-type]
        try:
            yield graph
        except BaseException:
            self._finish(stream.handle.capture)
            raise
        graph.handle = self.end_capture(stream)

    def begin_capture(self, stream: Stream, mode: str = "global") -> None:
        """CUDA's own call: it does not wait, and allows captures side by side."""
        if stream.is_default:
            raise CaptureError(None, "a capture cannot begin on the default stream")
        if mode not in MODES:
            raise InvalidArgument("capture_error_mode", mode, f"one of {', '.join(MODES)}")
        if stream.handle.capture is not None:
            raise CaptureError(None, f"{stream.name} is being captured already")
        capture = Capture(stream, mode, threading.get_ident())
        capture.join(stream, ())
        self._captures.append(capture)

    def end_capture(self, stream: Stream) -> ExecutableGraph:
        """Finish the capture that began on ``stream``.

        Raises:
            CaptureError: 908 in another thread (the capture goes on), 903 if it began elsewhere, 901, 904.
        """
        capture = self.check_end(stream)
        self._finish(capture)
        if capture.broken:
            raise CaptureError(901, "the capture was invalidated by an earlier call")
        if capture.unjoined():
            raise CaptureError(904, f"streams never joined back: {', '.join(capture.unjoined())}")
        return ExecutableGraph(tuple(capture.nodes))

    def check_end(self, stream: Stream) -> Capture:
        """The capture that may be ended here and now."""
        capture: Capture | None = stream.handle.capture
        if capture is None or capture.origin is not stream:
            raise CaptureError(903, f"no capture began on {stream.name}")
        if capture.mode != "relaxed" and capture.thread != threading.get_ident():
            raise CaptureError(908, "the capture began in another thread")
        return capture

    def _finish(self, capture: Capture) -> None:
        capture.release()
        self._captures.remove(capture)

    def is_capturing(self, stream: Stream) -> bool:
        """Whether the stream's work is being captured."""
        return stream.handle.capture is not None

    # -- events and nodes --------------------------------------------------------------------------------------------

    def _record_captured(self, capture: Capture, event: Event, stream: Stream) -> None:
        tail = capture.tails[stream]
        if event.handle.external:
            capture.add(stream, Node(f"record {event.name}", "", tail, records=event))
            return
        capture.events[event] = tail
        event.handle.captured, event.handle.record = capture, None

    def _wait_captured(self, stream: Stream, event: Event) -> bool:
        """A wait that concerns a capture; False if it concerns none."""
        here: Capture | None = self._capturing(stream)
        there: Capture | None = event.handle.captured
        if here is not None and event.handle.external:
            if event.handle.gpu == -1:
                return True  # never recorded: in PyTorch the event does not exist yet (16), and no node is made
            here.add(stream, Node(f"wait {event.name}", "", here.tails[stream], waits_for=event))
            return True
        if here is None and there is None:
            return False
        if there is None:
            if event.handle.record is None:
                return True
            self._break(here, 905, f"{stream.name} waits for {event.name}, recorded outside the capture")
        self._check_captured_event(event)
        assert there is not None
        if here is not None and here is not there:
            there.broken = True
            self._break(here, 902, f"{stream.name} waits for {event.name}, recorded in another capture")
        if stream.handle.legacy:
            self._break(there, 906, "the default stream cannot join a capture")
        there.join(stream, there.events[event])
        return True

    # -- legality ----------------------------------------------------------------------------------------------------

    def _capturing(self, stream: Stream) -> Capture | None:
        """The capture that work on ``stream`` goes to, if any; checks what that work may not do."""
        if not self._captures:
            return None
        capture: Capture | None = stream.handle.capture
        if capture is not None:
            if capture.broken:
                raise CaptureError(901, "the capture was invalidated by an earlier call")
            return capture
        if stream.handle.legacy:
            self._check_legacy(stream)
        return None

    def _check_legacy(self, default: Stream) -> None:
        """Work on the default stream would wait for blocking streams, captured ones too."""
        for capture in self._captures:
            if any(s.handle.blocking and s.handle.gpu == default.handle.gpu for s in capture.tails):
                # the call is refused and the capture goes on: seen on an H200 (50)
                raise CaptureError(906, "the default stream would depend on a captured blocking stream")

    def _check_host_call(
        self, what: str, *, stream: Stream | None = None, event: Event | None = None, every_stream: bool = False
    ) -> None:
        """Raise if a capture forbids what the host is about to do."""
        if event is not None:
            self._check_captured_event(event, what)
        for capture in self._captures:
            concerns = every_stream or (stream is not None and stream.handle.capture is capture)
            if concerns or self._forbids(capture):
                self._break(capture, 900, f"{what} during a capture")

    def unsafe_call(self, what: str) -> None:
        """Raise where a capture's mode forbids a call like cudaMalloc in this thread (59)."""
        self._check_host_call(what)

    def _forbids(self, capture: Capture) -> bool:
        """Whether the capture's mode forbids unsafe calls in this thread."""
        here = capture.thread == threading.get_ident()
        return capture.mode == "global" or (capture.mode == "thread_local" and here)

    def _check_captured_event(self, event: Event, asking: str = "") -> None:
        capture: Capture | None = event.handle.captured
        if capture is None:
            return
        if capture not in self._captures:
            raise CaptureError(1, f"invalid argument: {event.name} was last recorded inside a capture")
        if asking:
            self._break(capture, 907, f"{asking}, recorded inside the capture")

    def _break(self, capture: Capture | None, code: int, message: str) -> None:
        assert capture is not None
        capture.broken = True
        raise CaptureError(code, message)
