"""Constants of a user's dialect get a copy per use, without StableHLO and without jaxlib."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_dialects import func
from shardy_dialects import sdy as sdy_dialects
from shardy_py.plugins import Registry
from shardy_py.transforms.constant_copies import CopyReason

pytest.importorskip("xdsl")

TOY = sdy.Dialect("toy")
TOY.op("toy.zeros", traits=[sdy.ConstantLike, sdy.Pure])
TOY.op("toy.count", traits=[sdy.ConstantFoldable, sdy.Pure])
TOY.op("toy.window", traits=[sdy.ConstantFoldable, sdy.Pure], rule="i j -> i j")
TOY.op("toy.fill", traits=[sdy.Broadcast, sdy.Pure], rule="-> i j")
TOY.op("toy.add", traits=[sdy.Elementwise, sdy.Pure])
REGISTRY = Registry.of([TOY, *func.shardy_register_dialects(), *sdy_dialects.shardy_register_dialects()])

ROWS, COLUMNS = '<@mesh, [{"a"}, {}]>', '<@mesh, [{}, {"a"}]>'


def propagate(expression, **options):
    """Add the value %c of an expression to arguments sharded by rows, by columns, and by rows again."""
    from shardy_py.frontends.xdsl import parse_module

    t = "tensor<8x8xf32>"
    add = f"({t}, {t}) -> {t}"
    text = f"""builtin.module {{
      func.func @main(%x: {t}, %y: {t}, %z: {t}) -> ({t}, {t}, {t}) {{
        {expression.replace("@", t)}
        %0 = "toy.add"(%x, %c) : {add}
        %1 = "toy.add"(%y, %c) : {add}
        %2 = "toy.add"(%z, %c) : {add}
        func.return %0, %1, %2 : {t}, {t}, {t}
      }}
    }}"""
    shardings = {0: ("a", None), 1: (None, "a"), 2: ("a", None)}
    options = {"record_copies": True, **options}
    return sdy.propagate(parse_module(text), {"a": 2}, in_shardings=shardings, registry=REGISTRY, **options)


def shardings(result, name):
    """Return the shardings of the ops of one name in the result."""
    return [str(result.program.sharding(op.results[0])) for op in result.program.walk() if op.name == name]


def operand_shardings(result):
    """Return what each addition uses as its second operand: name and sharding."""
    adds = [op for op in result.program.walk() if op.name == "toy.add" and op.operands[0].is_block_argument]
    return [(op.operands[1].owner.name, str(result.program.sharding(op.operands[1]))) for op in adds]


def each_use_has_its_own(name):
    """Return what `operand_shardings` is where every use of an op is sharded as its user."""
    return [(name, ROWS), (name, COLUMNS), (name, ROWS)]


def noted(result, name):
    """Return the reason and the fates of the copies of an op."""
    copies = [item for item in result.copies if item.op == name]
    (reason,) = {item.reason for item in copies}
    return reason, [item.outcome for item in copies]


@pytest.mark.parametrize("explicit", [False, True])
def test_a_constant(explicit) -> None:
    """Each use shards its own copy of a constant; of two copies that end up alike one is left, never of two others."""
    result = propagate('%c = "toy.zeros"() : () -> @', explicit_collectives=explicit)
    assert operand_shardings(result) == each_use_has_its_own("toy.zeros")
    assert shardings(result, "toy.zeros") == [ROWS, COLUMNS]
    assert noted(result, "toy.zeros") == (CopyReason.CONSTANT, ["kept", "kept", "merged"])


def test_a_generator() -> None:
    """An op that folds and has no operands, such as an iota, is copied per use; its copies are not merged."""
    result = propagate('%c = "toy.count"() : () -> @')
    assert operand_shardings(result) == each_use_has_its_own("toy.count")
    assert shardings(result, "toy.count") == [ROWS, COLUMNS, ROWS]
    assert noted(result, "toy.count") == (CopyReason.GENERATOR, ["kept"] * 3)


def test_a_foldable_op() -> None:
    """An op that folds constants is copied with its operand; copies of the constant that end up alike are merged."""
    result = propagate('%zeros = "toy.zeros"() : () -> @\n%c = "toy.window"(%zeros) : (@) -> @')
    assert operand_shardings(result) == each_use_has_its_own("toy.window")
    assert shardings(result, "toy.zeros") == [ROWS, COLUMNS]
    assert noted(result, "toy.window") == (CopyReason.FOLDABLE, ["kept"] * 3)
    assert noted(result, "toy.zeros") == (CopyReason.CONSTANT, ["kept", "kept", "merged"])
    assert {item.through for item in result.copies if item.op == "toy.zeros"} == {"toy.window"}


def test_a_shared_sub_computation() -> None:
    """What several parts of a constant expression share is copied once per use of the expression, not once per part."""
    lines = (
        '%n = "toy.count"() : () -> @',
        '%w = "toy.window"(%n) : (@) -> @',
        '%c = "toy.add"(%w, %n) : (@, @) -> @',
    )
    result = propagate("\n".join(lines))
    assert operand_shardings(result) == each_use_has_its_own("toy.add")
    assert shardings(result, "toy.count") == [ROWS, COLUMNS, ROWS]
    assert shardings(result, "toy.window") == [ROWS, COLUMNS, ROWS]
    assert noted(result, "toy.add") == (CopyReason.ELEMENTWISE, ["kept"] * 3)


def test_an_expanded_scalar() -> None:
    """A scalar that is blown up to a tensor is copied per use as a constant is, the scalar itself is not."""
    result = propagate('%s = "toy.zeros"() : () -> tensor<f32>\n%c = "toy.fill"(%s) : (tensor<f32>) -> @')
    assert operand_shardings(result) == each_use_has_its_own("toy.fill")
    assert shardings(result, "toy.fill") == [ROWS, COLUMNS]
    assert len(shardings(result, "toy.zeros")) == 1
    assert noted(result, "toy.fill") == (CopyReason.SCALAR_EXPANSION, ["kept", "kept", "merged"])


def test_a_constant_with_one_use_is_no_copy() -> None:
    """What is used once is not reported: nothing was multiplied."""
    lines = ('%c = "toy.count"() : () -> @', '%d = "toy.zeros"() : () -> @', '%e = "toy.add"(%d, %x) : (@, @) -> @')
    result = propagate("\n".join(lines))
    assert {item.op for item in result.copies} == {"toy.count"}


def test_nothing_is_recorded_unless_asked() -> None:
    """Without the option there is no report, and the result is the same."""
    lines = '%c = "toy.zeros"() : () -> @'
    without = propagate(lines, record_copies=False)
    assert without.copies is None
    assert without.text == propagate(lines).text
