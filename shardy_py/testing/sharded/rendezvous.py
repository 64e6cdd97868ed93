"""Virtual devices: one thread each, which meet where they communicate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.program import Op
from shardy_py.values import define

SECONDS = 60.0
"""The time that a device waits for the others."""


@define
class Rendezvous:
    """A place where all devices hand in a value each, and see those of all others.

    Attributes:
        count: The number of devices.
    """

    count: int
    _slots: list[tuple[Op | None, Any]] = field(init=False)
    _barrier: Barrier = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._slots = [(None, None)] * self.count
        self._barrier = Barrier(self.count)

    def exchange(self, device: int, op: Op | None, value: Any) -> Sequence[Any]:
        """Return the value of each device at an op; None stands for the end of the program.

        Raises:
            UnsupportedError: the devices are at different ops.
        """
        self._slots[device] = (op, value)
        self._barrier.wait(SECONDS)
        entries = list(self._slots)
        self._barrier.wait(SECONDS)
        first = next((other for other, _ in entries if other is not None), None)
        if any(other is not first for other, _ in entries) and first is not None:
            message = "not all devices come to this collective: they go on differently before it"
            raise UnsupportedError(Diagnostic("devices-part", message, first.location, first.name))
        return [item for _, item in entries]

    def run(self, work: Callable[[int], Any]) -> list[Any]:
        """Return what a function gives for each device; all of them run at the same time.

        Raises:
            UnsupportedError: one device does not end.
            Exception: what the first device that failed raised.
        """
        results: list[Any] = [None] * self.count
        errors: dict[int, BaseException] = {}

        def run_device(device: int) -> None:
            try:
                results[device] = work(device)
                self.exchange(device, None, None)
            except BaseException as error:
                errors[device] = error
                self._barrier.abort()

        threads = [Thread(target=run_device, args=(device,), daemon=True) for device in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        failures = {device: error for device, error in errors.items() if not isinstance(error, BrokenBarrierError)}
        if failures:
            raise failures[min(failures)]
        if errors:
            message = f"a virtual device waited for another one longer than {SECONDS:g} seconds"
            raise UnsupportedError(Diagnostic("devices-part", message))
        return results
