"""The simplification of StableHLO ops: what hands on an operand, folds, or has a simpler form."""

from __future__ import annotations

from typing import ClassVar

import pytest

from shardy_dialects.stablehlo.simplify import SimplifyPass
from shardy_py.api.registries import load_registry
from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.passes.named.simplify_ops import SimplifyOpsPass
from shardy_py.plugins import Registry, RuleOptions, hookimpl
from shardy_py.transforms.run import run_on_attributes

T = "tensor<4x8xf32>"
SPLAT = f"%c = stablehlo.constant dense<2.0> : {T}\n"


@pytest.fixture(scope="module")
def registry() -> Registry:
    """Return what is known about ops."""
    return load_registry(options=RuleOptions())


def simplified(body: str, registry: Registry, result: str = T, *, prefix: str = "", suffix: str = "") -> list[Op]:
    """Return the ops, without the return, that are left of a function whose body gives ``%r``."""
    text = f"{prefix}func.func @main(%x: {T}) -> {result} {{\n{body}\nreturn %r : {result}\n}}{suffix}"
    program = import_module(parse_module(text))
    run_on_attributes(program, [SimplifyPass()], PassContext(registry))
    return [op for op in program.functions["main"].regions[0].block.ops if op.name != "func.return"]


FORWARDED = {
    "sum with zeros": f"%c = stablehlo.constant dense<0.0> : {T}\n%r = stablehlo.add %c, %x : {T}",
    "difference to zeros": f"%c = stablehlo.constant dense<0.0> : {T}\n%r = stablehlo.subtract %x, %c : {T}",
    "product with ones": f"%c = stablehlo.constant dense<1.0> : {T}\n%r = stablehlo.multiply %x, %c : {T}",
    "convert": f"%r = stablehlo.convert %x : {T}",
    "transpose in order": f"%r = stablehlo.transpose %x, dims = [0, 1] : ({T}) -> {T}",
    "two transposes": (
        f"%q = stablehlo.transpose %x, dims = [1, 0] : ({T}) -> tensor<8x4xf32>\n"
        f"%r = stablehlo.transpose %q, dims = [1, 0] : (tensor<8x4xf32>) -> {T}"
    ),
    "two reshapes": (
        f"%q = stablehlo.reshape %x : ({T}) -> tensor<32xf32>\n%r = stablehlo.reshape %q : (tensor<32xf32>) -> {T}"
    ),
    "whole slice": f"%r = stablehlo.slice %x [0:4, 0:8] : ({T}) -> {T}",
    "whole dynamic slice": (
        "%c = stablehlo.constant dense<3> : tensor<i32>\n"
        f"%r = stablehlo.dynamic_slice %x, %c, %c, sizes = [4, 8] : ({T}, tensor<i32>, tensor<i32>) -> {T}"
    ),
    "choice that is known": (
        f"{SPLAT}%p = stablehlo.compare GT, %c, %c : ({T}, {T}) -> tensor<4x8xi1>\n"
        f"%r = stablehlo.select %p, %c, %x : tensor<4x8xi1>, {T}"
    ),
}


@pytest.mark.parametrize("body", FORWARDED.values(), ids=FORWARDED)
def test_operands_are_handed_on(body: str, registry: Registry) -> None:
    """Nothing is left of an op that gives its operand."""
    assert simplified(body, registry) == []


KEPT = {
    "zeros minus a value": f"%c = stablehlo.constant dense<0.0> : {T}\n%r = stablehlo.subtract %c, %x : {T}",
    "quotient": f"%c = stablehlo.constant dense<1.0> : {T}\n%r = stablehlo.divide %c, %x : {T}",
    "product with zeros": f"%c = stablehlo.constant dense<0.0> : {T}\n%r = stablehlo.multiply %x, %c : {T}",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_what_changes_the_numbers_stays(body: str, registry: Registry) -> None:
    """An op stays whose operand is not its result, for infinities too."""
    assert len(simplified(body, registry)) == 2


RULE = "{sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([j, i]) {i=%d, j=%d}>}"


@pytest.mark.parametrize("rules", [(RULE % (4, 8), ""), ("", RULE % (8, 4))], ids=["first", "second"])
def test_an_op_with_a_sharding_rule_of_its_own_stays(rules: tuple[str, str], registry: Registry) -> None:
    """The rule is about the op: two transposes, of which one has a rule, are both left."""
    body = (
        f"%q = stablehlo.transpose %x, dims = [1, 0] {rules[0]} : ({T}) -> tensor<8x4xf32>\n"
        f"%r = stablehlo.transpose %q, dims = [1, 0] {rules[1]} : (tensor<8x4xf32>) -> {T}"
    )
    assert len(simplified(body, registry)) == 2


@pytest.mark.parametrize(("element_type", "name"), [("f8E8M0FNU", "iota"), ("f8E5M2", "constant")])
def test_a_counter_is_a_zero_where_the_type_has_one(element_type: str, name: str, registry: Registry) -> None:
    """A counter along a dimension of size 1 stays in a type of powers of two, which has no zero."""
    type_ = f"tensor<1x{element_type}>"
    (op,) = simplified(f"%r = stablehlo.iota dim = 0 : {type_}", registry, type_)
    assert op.name == f"stablehlo.{name}"


FOLDED = {
    "%r = stablehlo.sqrt %c : {T}": 1.41421353816986,
    "%r = stablehlo.subtract %c, %c : {T}": 0.0,
    "%r = stablehlo.tanh %c : {T}": 0.96402758359909,
}


@pytest.mark.parametrize(("body", "value"), FOLDED.items())
def test_constants_fold(body: str, value: float, registry: Registry) -> None:
    """An op on constants of one number is such a constant, rounded to its type."""
    (op,) = simplified(SPLAT + body.format(T=T), registry)
    assert float(str(op.attributes["value"]).removeprefix("dense<").partition(">")[0]) == pytest.approx(
        value, rel=1e-13
    )


@pytest.mark.parametrize("number", [2**62, -(2**63)])
def test_integers_that_floats_do_not_hold_are_left_alone(number: int, registry: Registry) -> None:
    """Sums of large integers would be rounded, or overflow."""
    type_ = "tensor<i64>"
    body = f"%c = stablehlo.constant dense<{number}> : {type_}\n%r = stablehlo.add %c, %c : {type_}"
    assert [op.name for op in simplified(body, registry, type_)] == ["stablehlo.constant", "stablehlo.add"]


def test_a_broadcast_that_repeats_nothing_is_a_reshape(registry: Registry) -> None:
    """A dimension of size 1 that is added is no reason to broadcast."""
    type_ = "tensor<4x1x8xf32>"
    (op,) = simplified(f"%r = stablehlo.broadcast_in_dim %x, dims = [0, 2] : ({T}) -> {type_}", registry, type_)
    assert op.name == "stablehlo.reshape"


def test_parts_of_parts_are_joined_at_once(registry: Registry) -> None:
    """A concatenation of a concatenation has the parts of both."""
    body = (
        f"%q = stablehlo.concatenate %x, %x, dim = 0 : ({T}, {T}) -> tensor<8x8xf32>\n"
        f"%r = stablehlo.concatenate %q, %x, dim = 0 : (tensor<8x8xf32>, {T}) -> tensor<12x8xf32>"
    )
    (op,) = simplified(body, registry, "tensor<12x8xf32>")
    assert len(op.operands) == 3


MESH = 'sdy.mesh @mesh = <["x"=2]>\n'
SHARDED = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}'


def test_shardings_of_ops_between_stay(registry: Registry) -> None:
    """Two transposes do not cancel where what is between has a sharding."""
    body = (
        f"%q = stablehlo.transpose %x, dims = [1, 0] {SHARDED} : ({T}) -> tensor<8x4xf32>\n"
        f"%r = stablehlo.transpose %q, dims = [1, 0] : (tensor<8x4xf32>) -> {T}"
    )
    assert len(simplified(body, registry, prefix=MESH)) == 2


def test_shardings_do_not_move_to_values_with_other_users(registry: Registry) -> None:
    """An op that hands on an operand stays where its sharding would become that of the operand everywhere."""
    zeros = f"%c = stablehlo.constant dense<0.0> : {T}\n"
    forwarded = f"%q = stablehlo.add %y, %c {SHARDED} : {T}\n%r = stablehlo.multiply %q, %z : {T}"
    of_argument = zeros + forwarded.replace("%y", "%x").replace("%z", "%q")
    sine = f"%y = stablehlo.sine %x : {T}\n"
    used_twice, used_once = (zeros + sine + forwarded.replace("%z", other) for other in ("%y", "%x"))
    counts = [len(simplified(body, registry, prefix=MESH)) for body in (of_argument, used_twice, used_once)]
    assert counts == [3, 4, 2]


UNFOLDED = {
    "resource": (
        "%c = stablehlo.constant dense_resource<w> : tensor<2xf32>\n"
        "%r = stablehlo.reshape %c : (tensor<2xf32>) -> tensor<1x2xf32>",
        "tensor<1x2xf32>",
    ),
    "order of zeros": (
        "%a = stablehlo.constant dense<-0.0> : tensor<f32>\n%b = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%r = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "tensor<i1>",
    ),
}


@pytest.mark.parametrize(("body", "result"), UNFOLDED.values(), ids=UNFOLDED)
def test_what_is_no_number_does_not_fold(body: str, result: str, registry: Registry) -> None:
    """Elements of a resource have no text, and zeros of both signs are equal numbers."""
    resource = '\n{-# dialect_resources: { builtin: { w: "0x040000000000803F00000040" } } #-}'
    ops = simplified(body, registry, result, suffix=resource)
    assert ops[-1].name in ("stablehlo.reshape", "stablehlo.compare")


class _NotedPass:
    """Note that it ran."""

    name: ClassVar[str] = "toy-simplify"
    runs_before: ClassVar[str] = "mpmd-simplify-ops"
    programs: ClassVar[list[Program]] = []

    def run(self, program: Program, context: PassContext) -> None:
        """Note the program."""
        self.programs.append(program)


class _Plugin:
    @hookimpl
    def shardy_register_passes(self):
        return [_NotedPass]


def test_a_plugin_simplifies_before_or_after() -> None:
    """Passes on either side of the place for them run once each."""
    registry = load_registry(options=RuleOptions(), plugins=[_Plugin()])
    program = import_module(
        parse_module(f"func.func @main(%x: {T}) -> {T} {{\n{FORWARDED['convert']}\nreturn %r : {T}\n}}")
    )
    run_on_attributes(program, [SimplifyOpsPass()], PassContext(registry))
    assert _NotedPass.programs == [program]
    assert [op.name for op in program.functions["main"].regions[0].block.ops] == ["func.return"]
