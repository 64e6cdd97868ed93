"""Device specs: what launches and lowering have to know of a device, and their TOML.

::

    name = "h100"
    capability = 90
    cores = 132
    threads_per_core = 2048
    threads_per_warp = 32
    threads_per_block = 1024
    shared_bytes = 49152
    blocks_x = 2147483647
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs
from attrs import field, validators

from shardy_py.errors import Diagnostic, OptionError, did_you_mean, read_text_file
from shardy_py.support.arguments import checked
from shardy_py.support.texts import parse_toml
from shardy_py.values import frozen

_FOLDER = "devices"
_CODE = "invalid-device"
_MOST = 2**31 - 1
_POSITIVE = validators.and_(validators.instance_of(int), validators.gt(0))


@frozen(kw_only=True)
class DeviceSpec:
    """A device with many cores that each run many threads.

    Args:
        name: Its name.
        cores: The number of cores (streaming multiprocessors).
        threads_per_core: The threads that one core keeps at once.
        threads_per_warp: The threads that run in lockstep.
        threads_per_block: The most threads of a block.
        shared_bytes: The shared memory of a block, in bytes.
        blocks_x: The most blocks along x.
        capability: The compute capability as PTX targets name it: 90 for ``sm_90``; 0 for devices that run no PTX.
    """

    name: str
    cores: int = field(validator=_POSITIVE)
    threads_per_core: int = field(default=2048, validator=_POSITIVE)
    threads_per_warp: int = field(default=32, validator=_POSITIVE)
    threads_per_block: int = field(default=1024, validator=_POSITIVE)
    shared_bytes: int = field(default=48 * 1024, validator=_POSITIVE)
    blocks_x: int = field(default=_MOST, validator=_POSITIVE)
    capability: int = field(default=90, validator=validators.and_(validators.instance_of(int), validators.ge(0)))

    @property
    def threads(self) -> int:
        """The threads that the whole device keeps at once."""
        return self.cores * self.threads_per_core


TILE_ALIGNMENT = 16
"""The alignment of tiles in shared memory, in bytes."""


def shared_tile_bytes(elements: int, bits: int) -> int:
    """Return the bytes of shared memory that a tile takes; its elements are whole bytes, its begin is aligned.

    Args:
        elements: The number of its elements.
        bits: The bits of an element.

    >>> shared_tile_bytes(33, bits=32), shared_tile_bytes(33, bits=4)
    (144, 48)
    """
    size = elements * -(-bits // 8)
    return -(-size // TILE_ALIGNMENT) * TILE_ALIGNMENT


DeviceLike = DeviceSpec | str | Path
"""A device spec, the name of one that comes along, or the path of a TOML file."""


def device_names() -> tuple[str, ...]:
    """Return the names of the device specs that come along."""
    folder = files("shardy_py.kernels").joinpath(_FOLDER)
    return tuple(sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")))


@checked
def get_device(given: DeviceLike, *, known: Mapping[str, Path] | None = None) -> DeviceSpec:
    """Return a device spec by its name or its TOML file; a spec is returned as it is.

    Args:
        given: A spec, the name of one that comes along, or a TOML file; a text that ends in ``.toml`` names a file.
        known: The files of further devices by their names, such as those of a registry's plugins.

    Raises:
        OptionError: there is no such device, or the file holds none.

    >>> get_device("h100").threads
    270336
    """
    if isinstance(given, DeviceSpec):
        return given
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".toml")):
        hint = f"give a TOML file, or one of {', '.join(device_names())}"
        text = read_text_file(given, code=_CODE, what="the device spec", hint=hint)
        return parse_device(text, source=str(given))
    if known is not None and given in known:
        return get_device(known[given])
    return _packaged(str(given), tuple(known or ()))


@cache
def _packaged(name: str, others: tuple[str, ...] = ()) -> DeviceSpec:
    if name not in device_names():
        known = (*device_names(), *others)
        hint = did_you_mean(name, known, otherwise=f"known: {', '.join(known)}; a name that ends in .toml is a file")
        raise OptionError(Diagnostic("unknown-device", f"there is no device spec {name!r}", hint=hint))
    resource = files("shardy_py.kernels").joinpath(_FOLDER, f"{name}.toml")
    return parse_device(resource.read_text(encoding="utf-8"), source=f"{name}.toml")


def parse_device(text: str, *, source: str = "") -> DeviceSpec:
    """Return the device spec of a TOML text.

    Args:
        text: The text; every field of `DeviceSpec` is a key.
        source: The name of its file, for errors.

    Raises:
        OptionError: it is no TOML or no device spec; all problems are listed.
    """
    data = parse_toml(text, code=_CODE, source=source)
    problems = [Diagnostic(_CODE, message, source, hint=hint) for message, hint in _problems(data)]
    if problems:
        raise OptionError(*problems)
    return DeviceSpec(**data)


def _problems(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is wrong with the keys and values of a device spec, and the fixes."""
    keys = tuple(item.name for item in attrs.fields(DeviceSpec))
    problems = [(f"unknown key {key!r}", f"the keys are {', '.join(keys)}") for key in data if key not in keys]
    for key in keys:
        value = data.get(key)
        if value is None:
            problems.append((f"{key} is missing", f"a device spec has {', '.join(keys)}"))
        elif key == "name":
            if not isinstance(value, str) or not value:
                problems.append(("name is no text", 'write name = "..."'))
        elif isinstance(value, bool) or not isinstance(value, int) or not _least(key) <= value <= _MOST:
            problems.append((f"{key} is not a whole number from {_least(key)} to {_MOST}", ""))
    return problems


def _least(key: str) -> int:
    return 0 if key == "capability" else 1


H100 = get_device("h100")
"""The device of XLA's reference kernels."""
