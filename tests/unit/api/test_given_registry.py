"""Registries of given dialects: programs have ops of `func` and `sdy` around those of the dialects."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.api.rules import list_rules
from shardy_py.testing import run_sharded

toy = sdy.Dialect("toy")
toy.op("toy.id", traits=[sdy.Elementwise])
toy.op("toy.softmax", rule="i j -> i j", need_replication="j")

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>\n'
HEAD = (
    MESH + "func.func @main(%x: tensor<8x16xf32> "
    '{sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {'
)
PROGRAMS = {
    "constraint": """
      %0 = "toy.id"(%y) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      %1 = sdy.sharding_constraint %0 <@mesh, [{"b"}, {}]> : tensor<8x16xf32>
      return %1 : tensor<8x16xf32>
    }""",
    "reshard": """
      %0 = sdy.reshard %x <@mesh, [{"a"}, {}]> : tensor<8x16xf32>
      %1 = "toy.softmax"(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      return %1 : tensor<8x16xf32>
    }""",
    "barrier": """
      %0 = sdy.propagation_barrier %x allowed_direction=FORWARD : tensor<8x16xf32>
      %1 = "toy.softmax"(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      return %1 : tensor<8x16xf32>
    }""",
    "call": """
      %0 = func.call @f(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }
    func.func private @f(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
      %0 = "toy.id"(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }""",
    "manual": """
      %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {?}]>] out_shardings=[<@mesh, [{"a"}, {?}]>]
          manual_axes={"a"} (%z: tensor<4x16xf32>) {
        %1 = "toy.id"(%z) : (tensor<4x16xf32>) -> tensor<4x16xf32>
        sdy.return %1 : tensor<4x16xf32>
      } : (tensor<8x16xf32>) -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }""",
}


class Plugin:
    """The dialect beside all installed ones."""

    @sdy.hookimpl
    def shardy_register_dialects(self) -> list[sdy.Dialect]:
        """Return the dialect."""
        return [toy]


@pytest.mark.parametrize("explicit", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_registry_of_one_dialect(name: str, explicit: bool) -> None:
    """A program of one dialect is propagated alike by a registry of it and by all plugins."""
    text = HEAD + PROGRAMS[name]
    alone = sdy.propagate(text, registry=sdy.Registry.of([toy]), explicit_collectives=explicit)
    assert alone.text == sdy.propagate(text, plugins=[Plugin()], explicit_collectives=explicit).text


def test_run_sharded() -> None:
    """The collectives at the border of a program that was read are ops of `sdy`."""
    text = 'func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {\n%0 = "toy.softmax"(%x) : '
    text += "(tensor<4x6xf32>) -> tensor<4x6xf32>\nreturn %0 : tensor<4x6xf32>\n}"
    functions = {"toy.softmax": lambda x: x.cumsum(1)}
    registry = sdy.Registry.of([toy])
    run = run_sharded(text, functions, {"a": 2}, in_shardings={0: (None, "a")}, registry=registry)
    assert run.ok
    assert run.collectives


def test_own_definitions_stay() -> None:
    """A registry that defines an op of `sdy` itself keeps its definition, and the other ops are added once."""
    dialect = sdy.Dialect("sdy")
    definition = dialect.op("sdy.reshard", traits=[sdy.Pure])
    registry = sdy.Registry.of([toy, dialect])
    result = sdy.propagate(HEAD + PROGRAMS["barrier"], registry=registry)
    assert result.registry.find("sdy.reshard") == definition
    assert result.registry.find("func.call") is not None
    assert result.registry.find("stablehlo.add") is None
    assert registry.find("func.call") is None
    assert sdy.propagate(HEAD + PROGRAMS["call"], registry=registry).registry is result.registry


def test_list_rules() -> None:
    """The list of rules has that of a constraint."""
    rules = list_rules(HEAD + PROGRAMS["constraint"], registry=sdy.Registry.of([toy]))
    assert [(item.op, item.rule is not None) for item in rules] == [("toy.id", True), ("sdy.sharding_constraint", True)]


@pytest.mark.parametrize(
    ("name", "op", "other"), [("func", "func.call", "func.func"), ("sdy", "sdy.reshard", "sdy.mesh")]
)
def test_plugins_that_every_program_needs(name: str, op: str, other: str) -> None:
    """A plugin whose ops are in programs of every dialect is left out only if another one defines these ops."""
    text = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {\n  return %x : tensor<8xf32>\n}"
    with pytest.raises(sdy.OptionError, match=f"the plugin '{name}' cannot be left out"):
        sdy.propagate(text, {"a": 2}, blocked=[name])
    dialect = sdy.Dialect(name)
    dialect.op(op)

    class Own:
        @sdy.hookimpl
        def shardy_register_dialects(self) -> list[sdy.Dialect]:
            return [dialect]

    registry = sdy.propagate(text, {"a": 2}, blocked=[name], plugins=[Own()]).registry
    assert registry.find(op) is not None
    assert registry.find(other) is None
