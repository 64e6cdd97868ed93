"""Constants that are merged by their kinds, against those that are merged by their parts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shardy_py.frontends.mlir import import_module, parse_module, print_module, write_back
from shardy_py.ir.graph.kinds import kind_of
from shardy_py.ir.graph.op_names import CONSTANT
from shardy_py.ir.graph.shardings import store_shardings
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.oracle.conformance import reference_registry
from shardy_py.sharding.parse import parse_tensor_sharding
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.transforms.finish.constant_or_scalar_merger import ConstantOrScalarMergerPass

CONSTANTS = (
    "stablehlo.constant {attributes} dense<1.0> : tensor<8xf32>",
    "stablehlo.constant {attributes} dense<2.0> : tensor<8xf32>",
    "stablehlo.constant {attributes} dense<1.0> : tensor<8x8xf32>",
    "stablehlo.broadcast_in_dim %a, dims = [] {attributes} : (tensor<f32>) -> tensor<8xf32>",
    "stablehlo.broadcast_in_dim %b, dims = [] {attributes} : (tensor<f32>) -> tensor<8xf32>",
)
AXES = (None, "", '"x"')
"""The axes of the first dimension; None for no sharding at all."""


def _line(number: int, constant: int, name: str) -> str:
    """Return a constant, maybe with another attribute."""
    return f"    %{number} = " + CONSTANTS[constant].replace("{attributes}", f'{{t.name = "{name}"}}' if name else "")


def _sharding(axes: str, rank: int) -> TensorSharding:
    """Return a sharding, a new object each time."""
    return parse_tensor_sharding(f"<@m, [{{{axes}}}{', {}' * (rank - 1)}]>")


@given(
    st.lists(
        st.tuples(st.integers(0, len(CONSTANTS) - 1), st.sampled_from(AXES), st.sampled_from(("", "one", "other"))),
        max_size=12,
    ),
    st.sets(st.integers(0, 11)),
)
def test_kinds_merge_what_names_attributes_and_types_do(
    constants: list[tuple[int, str | None, str]], converted: set[int]
) -> None:
    """Ops of a kind with one sharding are merged without another look; without kinds everything is compared."""
    lines = [_line(number, constant, name) for number, (constant, _, name) in enumerate(constants)]
    types = ["tensor<8x8xf32>" if "8x8" in line else "tensor<8xf32>" for line in lines]
    uses = [f'    "t.use"(%{number}) : ({type_}) -> ()' for number, type_ in enumerate(types)]
    head = ('sdy.mesh @m = <["x"=2]>', "func.func @f(%a: tensor<f32>, %b: tensor<f32>) {")
    text = "\n".join([*head, *lines, *uses, "    return", "}"])
    results = []
    for has_kinds in (True, False):
        program = import_module(parse_module(text))
        program.kinds_hold = has_kinds
        semantics = reference_registry()
        before = [op for op in program.walk() if op.name in ("stablehlo.constant", "stablehlo.broadcast_in_dim")]
        for op, (_, axes, _) in zip(before, constants, strict=True):
            if axes is not None:
                program.shardings[op.result.id] = _sharding(axes, len(op.result.shape))
        for number in converted:
            if number < len(before) and before[number].name == "stablehlo.constant":
                before[number].rename(CONSTANT)
        ConstantOrScalarMergerPass().run(program, PassContext(semantics, []))
        store_shardings(program, semantics)
        results.append(print_module(write_back(program)))
    assert results[0] == results[1]


def test_renamed_ops_of_a_kind_have_one_kind() -> None:
    """The kind under another name is the same for all ops that had the same kind, and has their types."""
    text = "\n".join(_line(number, constant, "") for number, constant in enumerate((0, 0, 1)))
    program = import_module(parse_module(f"func.func @f() {{\n{text}\n  return\n}}"))
    program.kinds_hold = True
    first, second, other = (op for op in program.walk() if op.name == "stablehlo.constant")
    before = kind_of(first)
    for op in (first, second, other):
        op.rename(CONSTANT)
    kind = kind_of(first)
    assert kind is not None
    assert before is not None
    assert kind is kind_of(second) is not kind_of(other)
    assert (kind.name, kind.types) == (CONSTANT, before.types)
