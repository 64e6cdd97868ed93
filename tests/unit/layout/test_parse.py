"""XLA's text: what is read, and what is refused where."""

from __future__ import annotations

import pytest

from shardy_py.errors import ParseError, VerificationError
from shardy_py.layout import (
    Bounded,
    HloOperand,
    Layout,
    MemorySpace,
    Shape,
    Split,
    Tile,
    parse_array,
    parse_instruction,
    parse_layout,
    parse_shape,
)


def test_every_part() -> None:
    """Each part of the text becomes a field."""
    shape = parse_array("bf16[8,<=300,?]{1,0,2:T(8,128)(2,1)L(16)E(16)S(1)SC(1:4)}")
    assert shape.sizes == (8, Bounded(300), None)
    assert shape.layout == Layout(
        (1, 0, 2),
        (Tile((8, 128)), Tile((2, 1))),
        tail_padding=16,
        element_bits=16,
        memory_space=MemorySpace(1),
        splits=(Split(1, (4,)),),
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("f32[2,3]", "f32[2,3]{1,0}"),
        (" f32 [ 2 , 3 ] { 0,1 : T (2) } ", "f32[2,3]{0,1:T(2)}"),
        ("f32[02]{0:L(1)E(0)S(0)}", "f32[2]{0}"),
        ("(f32[2],(s32[]))", "(f32[2]{0}, (s32[]))"),
        ("(s8[],s8[],s8[],s8[],s8[],s8[])", "(s8[], s8[], s8[], s8[], s8[], /*index=5*/s8[])"),
        ("( )", "()"),
        ("(token[], opaque[])", "(token[], opaque[])"),
        ("u32[]{:T(128)}", "u32[]{:T(128)}"),
        ("f4e2m1fn[0]{0:E(4)}", "f4e2m1fn[0]{0:E(4)}"),
    ],
)
def test_canonical_text(text: str, printed: str) -> None:
    """The text is printed as XLA prints it, whatever was left out or spaced."""
    assert str(parse_shape(text)) == printed


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("f32[2]{0:T(-1)}", 12, "-1 where a tile size"),
        ("f32[2]{0:T(0)}", 12, "0 where a tile size"),
        ("f32[2]{0:T()}", 12, "at least one size"),
        ("f32[2]{0:T(2,*)}", 14, r"'\*'"),
        ("f32[2]{0:L(0)}", 12, "0 where a tail padding"),
        ("f32[2]{0:E(-4)}", 12, "-4 where an element size"),
        ("f32[2]{0:S(-1)}", 12, "-1 where a memory space"),
        ("f32[2]{0:S(128)}", 12, "not one of 0..127"),
        ("f32[2,3]{1,1}", 12, "dimension 1 stands twice"),
        ("f32[2,3]{0,2}", 10, "not a permutation"),
        ("f32[2,3]{0}", 9, "1 dimension, the shape 2"),
        ("f32[2,3]{}", 9, "0 dimensions, the shape 2"),
        ("f32[]{}", 6, "empty layout"),
        ("f32[2]{0:}", 10, "a part of a layout"),
        ("f32[2]{0:S(1)T(2)}", 14, "'T' stands twice or too late"),
        ("f32[2]{0:M(10)}", 10, "metadata prefix"),
        ("f32[2]{0:D(D)}", 10, "sparse"),
        ("f32[2]{0:T(2)", 14, "found the end"),
        ("f32[2,]", 7, "expected a size"),
        ("f32[-2]", 5, "-2 where a size"),
        ("f32[9223372036854775808]", 5, "64 bits"),
        ("f32[4611686018427387904]", 1, "64 bits"),
        ("f32[2] x", 8, "the end of the shape"),
        ("F32[2]", 1, "did you mean f32"),
        ("f33[2]", 1, "no element type"),
        ("tuple[]", 1, "no element type"),
        ("token[2]", 7, "expected ']'"),
        ("(f32[2],)", 9, "expected an element type"),
        ("f32", 4, "expected '\\['"),
        ("", 1, "found the end"),
        ("f32[8]{0:SC(1:4)}", 10, "does not exist"),
        ("f32[8]{0:SC(0:8)}", 7, "not inside"),
        ("f32[8]{0:SC(0:4,2)}", 13, "not greater"),
        ("f32[8]{0:SC(0:2)(0:4)}", 10, "split twice"),
        ("(" * 200, 102, "nested"),
    ],
)
def test_refused(text: str, column: int, reason: str) -> None:
    """What is not valid is refused with its place: also what XLA lets through, or aborts on."""
    with pytest.raises(ParseError, match=reason) as caught:
        parse_shape(text)
    assert caught.value.diagnostics[0].location == f"1:{column}"


def test_no_array() -> None:
    """Where an array is needed, a tuple is refused; a layout stands on its own, too."""
    with pytest.raises(ParseError, match="is not the shape of an array"):
        parse_array("(f32[])")
    assert str(parse_layout("{}")) == "{}"
    with pytest.raises(ParseError, match="expected the end"):
        parse_layout("{0}{0}")


def test_dimensions() -> None:
    """Dimensions are numbered from both ends and have customary letters; the true rank leaves out size one."""
    shape = parse_array("f32[8,1,<=1,?]")
    assert [shape.dimension(number) for number in (0, 3, -1, -4)] == [0, 3, 3, 0]
    assert shape.true_rank == 2
    assert shape.letters == ("p", "z", "y", "x")
    assert (parse_array("f32[2,2]").letters, parse_array("f32[2,2,2]").letters) == (("y", "x"), ("z", "y", "x"))
    with pytest.raises(VerificationError, match="no dimension 4"):
        shape.dimension(4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tile(()),
        lambda: Tile((2, None)),
        lambda: Tile((0,)),
        lambda: Split(0, ()),
        lambda: Split(-1, (2,)),
        lambda: Layout((1,)),
        lambda: Layout((0,), tail_padding=0),
        lambda: Layout((0,), element_bits=-1),
        lambda: MemorySpace(-1),
        lambda: MemorySpace(128),
        lambda: Bounded(-1),
        lambda: Shape("f31", (2,)),
        lambda: Shape("f32", (-2,)),
        lambda: Shape("f32", (2, 2), Layout((0,))),
    ],
)
def test_values_are_valid(make: object) -> None:
    """No invalid value can be made in Python either."""
    with pytest.raises(VerificationError):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    [
        "add.936 = bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)} add(exponential.183, broadcast.3115)",
        "%fusion.3 = bf16[32,32,4096]{2,1,0:T(8,128)(2,1)S(1)} fusion(bf16[32,32,8192]{2,1,0:T(8,128)(2,1)S(1)} "
        "%fusion.32), kind=kCustom, calls=%all-reduce-scatter.3",
        'ROOT %c = f32[2]{0} constant({1, 2}), metadata={op_name="a, \\"b) }" source_line=3}',
        "p = (f32[], token[]) parameter(0), sharding={devices=[2,1]<=[2]}",
        "conv = f32[1]{0} convolution(a, b), window={size=1}, dim_labels=bf_io->bf",
        "%t = ((f32[]), s32[]) tuple((f32[]) %a, s32[] %b)",
    ],
)
def test_instruction_text(text: str) -> None:
    """The text of an operation is read and printed again."""
    assert str(parse_instruction(text)) == text


def test_anatomy() -> None:
    """An operation has a name, a shape, an opcode, operands with or without shapes, and attributes."""
    actual = parse_instruction("ROOT %a.1 = f32[2]{0:S(1)} fusion(%x, /*index=1*/f32[2] %y-2), kind=kLoop, calls=%f")
    assert (actual.name, actual.opcode, actual.is_root, actual.has_percent) == ("a.1", "fusion", True, True)
    assert actual.operands == (HloOperand("x"), HloOperand("y-2", parse_shape("f32[2]")))
    assert (actual.attribute("calls"), actual.attribute("to_apply")) == ("%f", None)
    assert parse_instruction("c = s32[] constant(-5)").literal == "-5"


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("%a = f32[2]{0:T(0)} add(%x)", 17, "tile size"),
        ("%a f32[2] add(%x)", 4, "expected '='"),
        ("%a = f32[2] add(%x", 19, "',' or '\\)'"),
        ("%a = f32[2] add(%x,)", 20, "a name"),
        ("%a = f32[2] add(%x) kind=a", 21, "','"),
        ("%a = f32[2] add(%x), kind", 26, "'='"),
        ("%a = f32[2] add(%x), kind=", 27, "the value of 'kind'"),
        ("%a = f32[2] add(%x), kind={a", 27, "needs '}'"),
        ("%a = f32[2] add(%x), kind=a}", 28, "closes no bracket"),
        ('%a = f32[2] add(%x), kind="a', 27, "does not end"),
        ("%a = f32[2] add(%x), k=1, k=2", 27, "stands twice"),
        ("= f32[2] add(%x)", 1, "a name"),
    ],
)
def test_refused_instructions(text: str, column: int, reason: str) -> None:
    """What is no operation is refused with its place."""
    with pytest.raises(ParseError, match=reason) as caught:
        parse_instruction(text)
    assert caught.value.diagnostics[0].location == f"1:{column}"
