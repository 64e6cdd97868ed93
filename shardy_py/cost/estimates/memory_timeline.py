"""The memory of a device over the main function: the bytes at each step, and the tensors held."""

from __future__ import annotations

from shardy_py.values import frozen


@frozen(eq=False)
class LiveTensor:
    """A tensor that a device holds for a while.

    Args:
        value: The id of its value.
        bytes: Its bytes.
        start: The number of the step that makes it; 0 for an argument.
        stop: The number of the last step that needs it.
    """

    value: int
    bytes: int
    start: int
    stop: int


@frozen(eq=False)
class MemoryTimeline:
    """The bytes that a device holds over the main function; the most of them is the peak.

    Args:
        ops: The id of the op of each step; the last one, -1, is the end.
        bytes: The bytes at each step, those for temporary values among them.
        tensors: The tensors held; results in the memory of donated arguments count with these.
    """

    ops: tuple[int, ...] = ()
    bytes: tuple[int, ...] = ()
    tensors: tuple[LiveTensor, ...] = ()
