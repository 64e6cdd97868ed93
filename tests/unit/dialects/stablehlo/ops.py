"""Small ops of the dialect, and their rules as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shardy_dialects.stablehlo import shardy_register_dialects
from shardy_py.ir.graph.attributes import RawAttribute
from shardy_py.ir.graph.program import Block, Op, Program, Region, Value
from shardy_py.ir.graph.types import OpaqueType, TensorType, Type, tensor
from shardy_py.plugins import Registry, RuleOptions

REGISTRY = Registry.of(shardy_register_dialects())

TOKEN = OpaqueType("!stablehlo.token")


def to_type(spec: tuple[int, ...] | Type) -> Type:
    """Return a tensor type of a shape; types stay as they are."""
    return spec if isinstance(spec, TensorType | OpaqueType) else tensor(*spec)


def arguments(*specs: tuple[int, ...] | Type) -> list[Value]:
    """Return the arguments of a block in a program of its own."""
    program = Program()
    block = Block(program, [to_type(spec) for spec in specs])
    region = Region([block])
    program.body.append(Op(program, "func.func", regions=[region]))
    return block.arguments


def make_op(name: str, operands: Iterable[Any], results: Iterable[Any], **attributes: Any) -> Op:
    """Return an op whose operands are values, or shapes or types of new block arguments.

    A short name belongs to ``stablehlo``. Strings that start with ``#`` become raw attributes.
    """
    operand_list = list(operands)
    values = operand_list if operand_list and isinstance(operand_list[0], Value) else arguments(*operand_list)
    owner = values[0].owner if values else None
    program = owner.program if isinstance(owner, Op) else owner.parent_op.program if owner else Program()
    decoded = {
        key: RawAttribute(value) if isinstance(value, str) and value.startswith("#") else value
        for key, value in attributes.items()
    }
    full_name = name if "." in name else f"stablehlo.{name}"
    return Op(program, full_name, values, [to_type(spec) for spec in results], decoded)


def rule_of(op: Op, *, conservative: bool = False, extended: bool = False) -> str | None:
    """Return the text of an op's rule, or None."""
    options = RuleOptions(conservative=conservative, extended=extended)
    rule = REGISTRY.with_options(options).get_sharding_rule(op)
    return None if rule is None else str(rule)
