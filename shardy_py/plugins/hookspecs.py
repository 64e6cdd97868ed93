"""The hooks a plugin may implement. They are called while a registry is built, never per op."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy

from shardy_py.ir.interfaces.frontend import Frontend
from shardy_py.ir.interfaces.passes import Pass
from shardy_py.plugins.dialect import Dialect
from shardy_py.schedule.model import OpPriority

if TYPE_CHECKING:
    from shardy_py.ir.interfaces.emission import KernelEmitter

PROJECT = "shardy"
ENTRY_POINT_GROUP = "shardy_py.dialects"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Decorator of functions that implement a hook of this package in a plugin."""


@hookspec
def shardy_register_dialects() -> Sequence[Dialect]:  # type: ignore[empty-body]
    """Return the dialects of the plugin.

    Called once for each registry that is built, before any program is read.
    """


@hookspec
def shardy_register_passes() -> Sequence[type[Pass]]:  # type: ignore[empty-body]
    """Return the passes of the plugin: frozen attrs classes whose fields are the options.

    Called once for each registry that is built. Pipelines find the passes by their names. Classes with ``of_kernels``
    are passes over the modules of kernels, see `shardy_py.ir.interfaces.emission.KernelModulePass`.
    """


@hookspec
def shardy_register_schedules() -> Sequence[OpPriority]:  # type: ignore[empty-body]
    """Return the op priorities of the plugin's own ops, each by a level of the default schedule.

    Called once for each registry that is built. What a user says of the same ops comes first.
    """


@hookspec
def shardy_register_frontends() -> Sequence[Frontend]:  # type: ignore[empty-body]
    """Return the frontends of the plugin, which read programs of other kinds and write them back.

    Called once for each registry that is built. They are asked before the bundled ones whether they accept a program.
    """


@hookspec
def shardy_register_emitters() -> Sequence[KernelEmitter]:  # type: ignore[empty-body]
    """Return the emitters of the plugin, which make the kernels of fusions.

    Called once for each registry that is built. They are asked before the bundled ones whether they accept a fusion.
    """


@hookspec
def shardy_register_devices() -> Sequence[Path]:  # type: ignore[empty-body]
    """Return the files (TOML) of the plugin's device specs for kernels; each is known by the name of its file.

    Called once for each registry that is built. They are read when a kernel is made for them.
    """
