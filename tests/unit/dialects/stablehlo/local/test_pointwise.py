"""Ops that are computed element by element on shards, and counters."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="programs are MLIR text")

import shardy_py as sdy
from shardy_dialects.stablehlo.elementwise.ops import CLIENT_OPS, CLIENT_OPS_OF_TWO
from shardy_py.frontends.mlir import import_module, parse_module, verify_module, write_back
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.local.convert_global_to_local import ConvertGlobalToLocalPass
from shardy_py.plugins import Registry
from shardy_py.transforms.run import run_on_attributes
from tests.unit.dialects.stablehlo.local.on_devices import MESH

UNARY, BINARY = ([entry.name.removeprefix("chlo.") for entry in ops] for ops in (CLIENT_OPS, CLIENT_OPS_OF_TWO))
FLAGS = ("is_inf", "is_neg_inf", "is_pos_inf")
OTHER_ELEMENTS = ("_asin_acos_kernel", "conj", "mulhi")
"""Ops on complex numbers or integers."""
SHARDED = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", "y"}]>]>}'


def test_client_ops_run_on_shards() -> None:
    """An op of CHLO that is computed element by element gathers nothing, although the reference has no rule for it."""
    names = [name for name in (*UNARY, *BINARY) if name not in OTHER_ELEMENTS]
    full_type, flags = "tensor<8x16xf32>", "tensor<8x16xi1>"
    lines, types = [], []
    for number, name in enumerate(names):
        operands = "%a, %a" if name in BINARY else "%a"
        inputs = ", ".join([full_type] * (2 if name in BINARY else 1))
        types.append(flags if name in FLAGS else full_type)
        lines.append(f'%{number} = "chlo.{name}"({operands}) : ({inputs}) -> {types[-1]}')
    results = ", ".join(f"%{number}" for number in range(len(names)))
    marks = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}'
    outputs = ", ".join(f"{type_} {marks}" for type_ in types)
    head = f"{MESH}\nfunc.func @main(%a: {full_type} {marks}) -> ({outputs}) {{"
    text = "\n".join([head, *lines, f"return {results} : {', '.join(types)}", "}"])
    local = sdy.propagate(text, local=True).local()
    assert (local.warnings, local.collectives) == ((), ())
    assert local.text.count("chlo.") == len(names)


@pytest.mark.parametrize(("element", "counted"), [("bf16", "i64"), ("complex<f32>", "i64"), ("i8", "i8")])
def test_counters_on_shards_are_rounded_once(element: str, counted: str) -> None:
    """The offset of a shard is added to integers, as the element type of a counter need not hold it."""
    type_ = f"tensor<4104x{element}>"
    text = f"""{MESH}
    func.func @main() -> ({type_} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x", "y"}}]>}}) {{
      %0 = stablehlo.iota dim = 0 {SHARDED} : {type_}
      return %0 : {type_}
    }}"""
    program = import_module(parse_module(text))
    run_on_attributes(program, [ConvertGlobalToLocalPass()], PassContext(Registry.from_entry_points()))
    assert [str(op.result.type) for op in program.walk() if op.name == "stablehlo.add"] == [f"tensor<513x{counted}>"]
    returned = program.functions["main"].regions[0].block.last
    assert [str(value.type) for value in returned.operands] == [f"tensor<513x{element}>"]
    verify_module(write_back(program))
