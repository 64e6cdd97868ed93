"""Attributes of ops, shared or not."""

from __future__ import annotations

import pytest

from shardy_py.ir.graph.attributes import SharedAttributes, freeze, shared_key, shared_parts, shared_symbols


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
    one, other = [op.attributes for op in program.walk() if op.name == "func.call"]
    assert isinstance(one, SharedAttributes)
    assert list(shared_symbols(one) or ()) == ["f"]
    assert shared_key(one) is not None
    assert shared_key(one) == shared_key(other)
    before = shared_parts(one)
    one["more"] = 1
    assert shared_key(one) is None
    assert shared_parts(one) != before == shared_parts(other)


def test_freezing_tells_numbers_of_different_types_apart() -> None:
    """1, 1.0 and True are equal in Python, and three attributes in MLIR."""
    assert len({freeze(value) for value in (1, 1.0, True)}) == 3
    assert freeze({"a": (1, [2]), "b": 3}) == freeze({"b": 3, "a": (1, (2,))})
