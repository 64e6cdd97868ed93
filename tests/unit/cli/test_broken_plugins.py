"""One broken installed plugin stops no command that does not need it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.errors import PluginError
from shardy_py.plugins.installed import installed_registry
from tests.unit.plugins.mistakes import PASS, SCHEDULE

pytestmark = pytest.mark.usefixtures("_plugins_go")

PLAIN = """\
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x16xf32> {
  %0 = stablehlo.add %x, %x : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
"""
USING = PLAIN.replace("stablehlo.add %x, %x :", '"bad.f"(%x) :').replace(
    ": tensor<8x16xf32>\n  return", ": (tensor<8x16xf32>) -> tensor<8x16xf32>\n  return"
)
PRELUDE = "import shardy_py as sdy\nfrom shardy_py.plugins import *\ntoy = sdy.Dialect('bad')\n"
HOOK = "\n\n@sdy.hookimpl\ndef shardy_register_dialects():\n    return [toy]\n"

BROKEN = {
    "cannot be imported": "import nothing_of_that_name",
    "ends the program": "import sys\nsys.exit(3)",
    "raises no Exception": "raise BaseException('x')",
    "has a hook that returns None": "@sdy.hookimpl\ndef shardy_register_passes(): pass",
    "has a trait as a text": "toy.op('bad.f', traits=['Elementwise'])",
    "has a data flow without a method": "class F:\n    def get_edge_sources(self, op, owner): ...\n"
    "toy.op('bad.f', data_flow=F())",
    "has traits_of of all ops that raises": "toy.op('*', traits_of=lambda op: 1 // 0)",
    "has traits_of of all ops that gives None": "toy.op('*', traits_of=lambda op: None)",
    "gives a selector": SCHEDULE.format("[Selector(names=('bad.f',))]"),
    "gives a level that is not there": "toy.op('bad.f')\n"
    + SCHEDULE.format("[OpPriority(99, Entry(Selector(names=('bad.f',))))]"),
    "has a pass that raises": PASS.format("def run(self, program, context): raise ValueError('x')"),
    "has a pass that runs before nothing": PASS.format("def run(self, p, c): ...").replace(
        "sdy-constant", "sdy-konstant"
    ),
    "has a pass with a name that is taken": PASS.format("def run(self, p, c): ...").replace(
        "toy-sweep", "sdy-close-shardings"
    ),
    "has a pass that cannot be made": PASS.format("def __init__(self, x): ...\n    def run(self, p, c): ..."),
}


@pytest.fixture
def _plugins_go(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("bad_plugin", None)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Installs a distribution with a plugin for one test, and returns the name of the plugin."""
    pytest.importorskip("jaxlib")
    monkeypatch.chdir(tmp_path)
    Path("plain.mlir").write_text(PLAIN)
    Path("using.mlir").write_text(USING)

    def install(body: str) -> str:
        name = "bad_plugin"
        site = tmp_path / "site"
        metadata = site / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (site / f"{name}.py").write_text(PRELUDE + body + HOOK)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[shardy_py.dialects]\n{name} = {name}\n")
        sys.path.append(str(site))
        return name

    return install


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_plugin_stops_nothing_that_does_not_need_it(body: str, install: Any, shardy: Any) -> None:
    """Commands do their work; those that look at plugins say what is wrong, naming plugin and distribution."""
    name = install(body)
    for arguments in (["--help"], ["layout", "f32[3,5]"]):
        done = shardy(*arguments)
        assert (done.exit_code, done.stderr) == (0, "")
    assert f"{name}" in shardy("plugins").stdout
    for arguments in (
        ["schedule"],
        ["rules", "plain.mlir"],
        ["propagate", "plain.mlir"],
        ["cost", "plain.mlir", "--machine", "cpu-8"],
        ["explain", "plain.mlir", "--value", "%0"],
        ["diff", "plain.mlir", "--schedule", "flat"],
    ):
        done = shardy(*arguments)
        assert done.exit_code == 0, (arguments, done.stderr, done.exception)
        assert done.exception is None
    stderr_text = shardy("propagate", "plain.mlir").stderr
    assert "warning: " in stderr_text
    assert f"{name}" in stderr_text
    assert "Traceback" not in stderr_text


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN.keys())
def test_strict_plugins_stop(body: str, install: Any) -> None:
    """Whoever wants all plugins to work is told by an error that names the plugin."""
    name = install(body)
    with pytest.raises(PluginError, match=name):
        sdy.propagate(PLAIN, strict_plugins=True)


@pytest.mark.parametrize(
    "body",
    [
        "toy.op('bad.f', traits_of=lambda op: 1 // 0)",
        "toy.op('bad.f', traits_of=lambda op: None)",
        "toy.op('bad.f', rule=lambda op: 1 // 0)",
        "toy.op('bad.f', traits=[sdy.Elementwise])\n"
        + PASS.format("def run(self, program, context): raise ValueError('x')"),
    ],
)
def test_programs_that_need_a_broken_plugin_are_told(body: str, install: Any, shardy: Any) -> None:
    """What fails at an op of the plugin is one error with the plugin and a way out."""
    name = install(body)
    assert shardy("propagate", "plain.mlir").exit_code == 0
    done = shardy("propagate", "using.mlir")
    assert done.exit_code == 2
    assert done.stderr.count("error:") == 1
    assert f"plugin '{name}'" in done.stderr
    assert f"{name}.py:" in done.stderr
    assert shardy("propagate", "using.mlir", "--block-plugin", name).exit_code == 0


def test_a_plugin_that_does_not_exist_cannot_be_blocked(module: str, shardy: Any) -> None:
    """A misspelt name would leave the plugin in; the closest is named."""
    done = shardy("propagate", module, "--block-plugin", "stablehl0")
    assert done.exit_code == 2
    assert "there is no plugin 'stablehl0' to block" in done.stderr
    assert "did you mean stablehlo?" in done.stderr


def test_a_half_done_pass_is_an_error(install: Any) -> None:
    """A pass that fails after it changed the program leaves nothing that one could go on with."""
    body = PASS.format(
        "def run(self, program, context):\n"
        "        next(op for op in program.walk() if op.name == 'stablehlo.add').name = 'stablehlo.multiply'\n"
        "        raise ValueError('x')"
    )
    name = install(body)
    with pytest.raises(PluginError, match=name):
        sdy.propagate(PLAIN)


def test_wildcards_leave_functions_alone(install: Any) -> None:
    """`op("*", ...)` speaks of no op of func and builtin, which hold functions together; a named dialect is meant."""
    pytest.importorskip("jaxlib")
    install("toy.op('*', traits=[sdy.Trait('Mine')])\ntoy.op('func.*', traits=[sdy.Trait('Func')])")
    registry = installed_registry(skip_broken=True)
    actual = {name: registry.traits_of_name(name) or () for name in ("func.call", "builtin.module", "stablehlo.add")}
    mine = {name: sdy.Trait("Mine") in traits for name, traits in actual.items()}
    assert mine == {"func.call": False, "builtin.module": False, "stablehlo.add": True}
    assert sdy.Trait("Func") in actual["func.call"]


@pytest.mark.parametrize("command", ["rules", "propagate", "cost", "explain", "diff", "compare", "schedule", "plugins"])
def test_a_plugin_file_is_the_same_in_every_command(command: str, install: Any, shardy: Any) -> None:
    """A file with a future import, a dataclass and a file beside it is loaded alike by each command."""
    Path("beside_toy.py").write_text("RULE = 'i j -> i j'\n")
    Path("whole_toy.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport beside_toy\n"
        "import shardy_py as sdy\n\n\n@dataclass(frozen=True)\nclass Name:\n    text: str\n\n\n"
        "bad = sdy.Dialect('bad')\nbad.op(Name('bad.f').text, rule=beside_toy.RULE)\n" + HOOK.replace("[toy]", "[bad]")
    )
    more = {
        "cost": ["--machine", "cpu-8"],
        "explain": ["--value", "%0"],
        "diff": ["--schedule", "flat"],
        "compare": ["--schedule", "flat", "--jobs", "1"],
    }
    file = [] if command in ("schedule", "plugins") else ["using.mlir"]
    done = shardy(command, *file, *more.get(command, []), "--plugin", "whole_toy.py")
    assert done.exit_code == 0, done.stderr
    Path("whole_toy.py").write_text("import sys\nsys.exit(0)\n")
    done = shardy(command, *file, *more.get(command, []), "--plugin", "whole_toy.py")
    assert done.exit_code == 2
    assert done.stderr.startswith("whole_toy.py:2: error: the plugin ends the program: sys.exit(0)")
