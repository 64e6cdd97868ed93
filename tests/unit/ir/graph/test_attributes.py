"""Attributes of ops, shared or not."""

from __future__ import annotations

import pytest

from shardy_py.ir.graph.attributes import (
    SharedAttributes,
    freeze,
    set_in_each,
    shared_key,
    shared_parts,
    shared_symbols,
)
from shardy_py.ir.graph.rewriting import clone_op


def test_a_plain_mapping_shares_nothing() -> None:
    """An attribute named like a part of the protocol does not make a dictionary shared."""
    attributes = {"key": 1, "parts": 2, "symbols": 3}
    assert not isinstance(attributes, SharedAttributes)
    assert (shared_key(attributes), shared_parts(attributes), shared_symbols(attributes)) == (None, None, None)


def test_the_attributes_of_native_ops_are_shared() -> None:
    """Ops with equal attributes have one key, until those of one change; the parts tell the change, too."""
    pytest.importorskip("jaxlib")
    from shardy_py.frontends.mlir import import_module, parse_module

    program = import_module(
        parse_module(
            "func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }\n"
            "func.func @g(%x: tensor<8xf32>) -> tensor<8xf32> { %0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>\n"
            "%1 = call @f(%0) : (tensor<8xf32>) -> tensor<8xf32>\nreturn %1 : tensor<8xf32> }"
        )
    )
    left, right = [op.attributes for op in program.walk() if op.name == "func.call"]
    assert isinstance(left, SharedAttributes)
    assert list(shared_symbols(left) or ()) == ["f"]
    assert shared_key(left) is not None
    assert shared_key(left) == shared_key(right)
    before = shared_parts(left)
    left["more"] = 1
    assert shared_key(left) is None
    assert shared_parts(left) != before == shared_parts(right)


def test_freezing_tells_numbers_of_different_types_apart() -> None:
    """1, 1.0 and True are equal in Python, and three attributes in MLIR."""
    assert len({freeze(value) for value in (1, 1.0, True)}) == 3
    assert freeze({"a": (1, [2]), "b": 3}) == freeze({"b": 3, "a": (1, (2,))})


def test_attributes_of_many_ops_are_set_as_one_by_one() -> None:
    """Whatever the ops' attributes are: of a module, changed before, with such an attribute already, or new."""
    pytest.importorskip("jaxlib")
    from shardy_py.frontends.mlir import import_module, parse_module, print_module, write_back

    text = """\
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  %1 = stablehlo.add %0, %a {t.n = 1} : tensor<4xf32>
  %2 = stablehlo.add %1, %a {t.n = 2} : tensor<4xf32>
  %3 = stablehlo.add %2, %a : tensor<4xf32>
  %4 = stablehlo.add %3, %a : tensor<4xf32>
  return %4 : tensor<4xf32>
}
"""
    results = []
    for together in (True, False):
        program = import_module(parse_module(text))
        ops = [op for op in program.walk() if op.name == "stablehlo.add"]
        ops[3].attributes["t.more"] = True
        copied = clone_op(ops[4], {})
        ops[4].parent.insert_after(ops[4], copied)
        mappings = [{}, *[op.attributes for op in ops], copied.attributes, {"t.n": 3}]
        pairs = list(zip(mappings, [2, 2, 2, 2, 2, 1, 2, 2], strict=True))
        if together:
            set_in_each("t.n", iter(pairs))
        else:
            for attributes, value in pairs:
                attributes["t.n"] = value
        keys = [shared_key(attributes) is None for attributes in mappings]
        results.append((list(map(dict, mappings)), keys, print_module(write_back(program))))
    assert results[0] == results[1]
