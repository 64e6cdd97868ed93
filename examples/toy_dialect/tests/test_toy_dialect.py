"""The rules of the dialect, and a program written in it."""

from pathlib import Path

import pytest
import toy_dialect

import shardy_py as sdy
from shardy_py.ir import Builder, tensor

REGISTRY = sdy.Registry.of([toy_dialect.toy])


def rule(name, operands, results):
    """Return the rule of one op as text."""
    b = Builder()
    with b.function("main", operands) as values:
        b.op(name, list(values), results)
        b.return_()
    return str(REGISTRY.get_sharding_rule(next(op for op in b.program.walk() if op.name == name)))


def test_attention_shares_heads():
    """Heads of keys and values are the major part of the heads of queries."""
    q, kv = tensor(2, 8, 16, 4), tensor(2, 2, 32, 4)
    found = rule("toy.attention", [q, kv, kv], [q])
    assert found.startswith("<([i, jk, l, m], [i, j, n, m], [i, j, n, o])->([i, jk, l, o])")
    assert "j=2, k=4" in found


def test_norm_and_top_k_see_whole_rows():
    """Both need their last dimension on one device."""
    assert rule("toy.rms_norm", [tensor(8, 4), tensor(4)], [tensor(8, 4)]).endswith("need_replication={j}>")
    assert rule("toy.top_k", [tensor(8, 64)], [tensor(8, 4)] * 2).startswith("<([i, j])->([i, k], [i, k])")


def test_the_program_propagates():
    """The batch reaches everything, through the loop, too."""
    pytest.importorskip("xdsl")
    path = Path(__file__).parents[1] / "program.xdsl"
    result = sdy.propagate(path, {"data": 2}, in_shardings={0: ("data", None)}, plugins=[])
    assert str(result.results[0]) == '<@mesh, [{"data"}, {}]>'
