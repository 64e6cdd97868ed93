"""Upstream's debug information: where shardings came from, as attributes on the ops."""

from shardy_py.ir.debug_info.recorder import DebugOptions, DebugRecorder

__all__ = ["DebugOptions", "DebugRecorder"]
