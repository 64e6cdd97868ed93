"""Emitters, passes and devices of plugins in kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

from attrs import frozen
from xdsl.dialects import builtin

import shardy_py as sdy
from shardy_py.errors import OptionError, PluginError
from shardy_py.kernels import Fusion, Launch, emit
from shardy_py.kernels.entry.entries import loop_entry
from shardy_py.kernels.reasons import explain
from shardy_py.testing import make_op

DEVICE = """
name = "tiny"
capability = 80
cores = 1
threads_per_core = 64
threads_per_warp = 32
threads_per_block = 1024
shared_bytes = 49152
blocks_x = 65535
"""


class OneWarp:
    """An emitter of small fusions: blocks of one warp."""

    name = "one-warp"

    def accepts(self, fusion: Fusion) -> str:
        """Take fusions of up to a thousand elements."""
        return "it has few elements" if fusion.elements(fusion.roots[0]) <= 1000 else ""

    def launch(self, fusion: Fusion, device: Any) -> Launch:
        """Return one thread per element."""
        warp = device.threads_per_warp
        return Launch((-(-fusion.elements(fusion.roots[0]) // warp), 1, 1), (warp, 1, 1))

    def entry(self, functions: Any, launch: Launch) -> Any:
        """Return the loop over the elements."""
        return loop_entry(functions, launch)


@frozen
class Seen:
    """A pass that marks modules."""

    name: ClassVar[str] = "acme-seen"
    of_kernels: ClassVar[bool] = True
    runs_after: ClassVar[str] = "flatten-tensors"

    def run(self, module: builtin.ModuleOp, context: Any) -> None:
        """Add the name of the device."""
        module.attributes["acme.seen"] = builtin.StringAttr(context.device.name)


class Plugin:
    """A plugin whose hooks give what a test sets."""

    __shardy_name__ = "acme"
    emitters: tuple[Any, ...] = ()
    passes: tuple[Any, ...] = ()
    devices: tuple[Any, ...] = ()

    @sdy.hookimpl
    def shardy_register_dialects(self) -> list[sdy.Dialect]:
        """Return a dialect with one op."""
        acme = sdy.Dialect("acme")
        acme.op("acme.double", traits=[sdy.Elementwise], emission="x -> x * 2")
        return [acme]

    @sdy.hookimpl
    def shardy_register_passes(self) -> list[Any]:
        """Return the passes."""
        return list(self.passes)

    @sdy.hookimpl
    def shardy_register_emitters(self) -> list[Any]:
        """Return the emitters."""
        return list(self.emitters)

    @sdy.hookimpl
    def shardy_register_devices(self) -> list[Any]:
        """Return the files of devices."""
        return list(self.devices)


def kernel_of(size: int = 100, *, device: str = "h100", **parts: Any) -> Any:
    """Return the kernel of an op under a plugin with parts of its own."""
    plugin = Plugin()
    for name, arrays in parts.items():
        setattr(plugin, name, arrays)
    registry = sdy.Registry.from_entry_points(plugins=[plugin])
    op = make_op("acme.double", [(size,)], [(size,)])
    return emit(Fusion.of_function(op.program.functions["main"], registry), device=device)


def test_an_emitter_takes_what_it_accepts() -> None:
    """An emitter of a plugin makes the kernels that it accepts, the bundled ones all others."""
    kernel = kernel_of(emitters=[OneWarp()])
    assert (kernel.choice.name, kernel.launch.blocks, kernel.launch.threads) == ("one-warp", (4, 1, 1), (32, 1, 1))
    assert explain(kernel)[0] == "emitter one-warp: it has few elements"
    x = np.arange(100, dtype=np.float32)
    for stage in ("initial", None):
        assert np.array_equal(kernel.run(x, stage=stage)[0], x * 2)
    assert kernel_of(2000, emitters=[OneWarp()]).choice.name == "loop"


def test_a_pass_runs_where_it_asks_to_be() -> None:
    """A pass of a plugin is a stage right after the pass that it names, and knows the device."""
    kernel = kernel_of(passes=[Seen])
    names = [name.partition(".")[2] for name in kernel.stages]
    assert names[names.index("acme-seen") - 1] == "flatten-tensors"
    assert 'acme.seen = "h100"' in kernel.stage("acme-seen")
    assert "acme.seen" not in kernel.stage("flatten-tensors")
    x = np.arange(100, dtype=np.float32)
    assert np.array_equal(kernel.run(x)[0], x * 2)


def test_passes_at_one_place_run_in_the_order_of_their_names() -> None:
    """The order in which a plugin lists them does not matter, and stages are numbered through."""
    kernel = kernel_of(passes=[Seen, AlsoSeen])
    names = list(kernel.stages)[1:]
    assert [name.partition(".")[0] for name in names] == [f"{number:02}" for number in range(len(names))]
    names = [name.partition(".")[2] for name in names]
    index = names.index("flatten-tensors")
    assert names[index + 1 : index + 3] == ["acme-also-seen", "acme-seen"]


def test_passes_of_kernels_are_none_of_programs() -> None:
    """A pass over modules of kernels does not run over programs."""
    plugin = Plugin()
    plugin.passes = (Seen,)
    registry = sdy.Registry.from_entry_points(plugins=[plugin])
    assert "acme-seen" not in registry.passes
    assert list(registry.kernel_passes) == ["acme-seen"]


def test_a_device_is_known_by_name(tmp_path: Path) -> None:
    """A device spec of a plugin is known by the name of its file; an unknown one lists it."""
    file = tmp_path / "tiny.toml"
    file.write_text(DEVICE, encoding="utf-8")
    assert kernel_of(device="tiny", devices=[file]).device.threads == 64
    with pytest.raises(OptionError, match="did you mean tiny"):
        kernel_of(device="tinny", devices=[file])


class Breaks(Seen):
    """A pass that raises."""

    name: ClassVar[str] = "acme-breaks"

    def run(self, module: builtin.ModuleOp, context: Any) -> None:
        """Fail."""
        raise ValueError("no")


class Returns(Seen):
    """A pass that returns a module instead of rewriting the one that it gets."""

    name: ClassVar[str] = "acme-returns"

    def run(self, module: builtin.ModuleOp, context: Any) -> Any:
        """Return a copy."""
        return module.clone()


class Malforms(Seen):
    """A pass that leaves a function whose body has no terminator."""

    name: ClassVar[str] = "acme-malforms"

    def run(self, module: builtin.ModuleOp, context: Any) -> None:
        """Erase the terminator of the first function."""
        last = module.body.block.first_op.regions[0].block.last_op  # type: ignore[union-attr]
        last.detach()  # type: ignore[union-attr]
        last.erase()  # type: ignore[union-attr]


class AlsoSeen(Seen):
    """A pass at the same place as another one, before it in the order of names."""

    name: ClassVar[str] = "acme-also-seen"


class Lost(Seen):
    """A pass beside one that does not exist."""

    name: ClassVar[str] = "acme-lost"
    runs_after: ClassVar[str] = "flatten-tensor"


class WrongLaunch(OneWarp):
    """An emitter whose launch is a number."""

    def launch(self, fusion: Fusion, device: Any) -> Any:
        """Return no launch."""
        return 32


class WrongReason(OneWarp):
    """An emitter that accepts by a truth value."""

    def accepts(self, fusion: Fusion) -> Any:
        """Return no text."""
        return True


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"passes": [Breaks]}, "the pass 'acme-breaks' raised ValueError: no(.|\n)*plugin 'acme'"),
        ({"passes": [Returns]}, "the pass 'acme-returns' returned (.|\n)*returns nothing(.|\n)*plugin 'acme'"),
        ({"passes": [Malforms]}, "'acme-malforms' left a kernel that is not well formed(.|\n)*plugin 'acme'"),
        ({"passes": [Lost]}, "which is not a kernel pass(.|\n)*did you mean flatten-tensors"),
        ({"emitters": [WrongLaunch()]}, "returned 32, not a Launch(.|\n)*plugin 'acme'"),
        ({"emitters": [WrongReason()]}, "returned True, not a text(.|\n)*plugin 'acme'"),
        ({"emitters": [OneWarp]}, "not a list of emitters"),
        ({"devices": ["tiny.toml"]}, "not a list of paths of TOML files"),
        ({"emitters": [OneWarp(), OneWarp()]}, "the emitter 'one-warp' is defined by"),
    ],
)
def test_mistakes_name_the_plugin(parts: dict[str, Any], message: str) -> None:
    """What goes wrong in an emitter or a pass, or in a hook, is an error with the plugin's name."""
    with pytest.raises(PluginError, match=message):
        _ = kernel_of(**parts).stages
