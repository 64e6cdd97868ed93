"""The rules of the dialect, checked against what its ops compute, and a program written in it."""

from pathlib import Path

import numpy as np
import pytest
import toy_dialect

import shardy_py as sdy
from shardy_py import testing as kit

PROGRAM = Path(__file__).parents[1] / "program.xdsl"
REGISTRY = sdy.Registry.of([toy_dialect.toy])


def attention(query, key, value):
    """Softmax attention; groups of heads of the query share a head of key and value."""
    grouped = query.reshape(len(query), key.shape[1], -1, *query.shape[2:])
    scores = np.exp(np.einsum("bhgsd,bhtd->bhgst", grouped, key))
    result = np.einsum("bhgst,bhte->bhgse", scores / scores.sum(-1, keepdims=True), value)
    return result.reshape(len(query), -1, *result.shape[3:])


def top_k(x):
    """Return the four largest of each row and where they are."""
    places = np.argsort(-x, -1)[..., :4]
    return np.take_along_axis(x, places, -1), places


def loop(carried, regions):
    """Run the body twice."""
    return regions[0](regions[0](carried))


FUNCTIONS = {
    "toy.add": np.add,
    "toy.zeros": lambda op: np.zeros(op.results[0].shape),
    "toy.window": lambda x: np.cumsum(x, 1),
    "toy.matmul": np.matmul,
    "toy.rms_norm": lambda x, w: w * x / np.sqrt((x**2).mean(-1, keepdims=True)),
    "toy.top_k": top_k,
    "toy.attention": attention,
    "toy.loop": loop,
}


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("toy.add", [(4, 6), (4, 6)]),
        ("toy.window", [(4, 6)]),
        ("toy.matmul", [(2, 4, 6), (6, 8)]),
        ("toy.rms_norm", [(2, 4, 6), (6,)]),
        ("toy.top_k", [(4, 8)]),
        ("toy.attention", [(2, 8, 6, 4), (2, 2, 4, 4), (2, 2, 4, 6)]),
    ],
)
def test_rules_hold(name, shapes):
    """Each op on shards gives the shards of the op, and no rule could say more; kernels compute the op."""
    kit.assert_rule_holds(name, FUNCTIONS[name], shapes, registry=REGISTRY)
    if REGISTRY.find(name).emission:
        kit.assert_emits(name, FUNCTIONS[name], shapes, registry=REGISTRY)


def test_attention_shares_heads():
    """Heads of keys and values are the major part of the heads of queries."""
    spec = sdy.rule("b (h g) s d, b h t d, b h t e -> b (h g) s e", g=4, need_replication="t, d")
    kit.assert_rule(
        "toy.attention", spec, [(2, 8, 6, 4), (2, 2, 4, 4), (2, 2, 4, 6)], [(2, 8, 6, 6)], registry=REGISTRY
    )


def test_the_program_propagates():
    """The batch reaches everything, through the loop, too."""
    pytest.importorskip("xdsl")
    result = sdy.propagate(PROGRAM, {"data": 2}, in_shardings={0: ("data", None)})
    kit.assert_sharding_snapshot(result, Path(__file__).with_name("program.txt"))


def test_the_program_runs_on_shards():
    """Devices that have a part of the batch and of the weights each compute what one device does."""
    pytest.importorskip("xdsl")
    in_shardings = {0: ("data", None), 1: ("model", None)}
    run = kit.assert_runs_sharded(PROGRAM, FUNCTIONS, {"data": 2, "model": 2}, in_shardings=in_shardings, strict=True)
    assert "reduce_scatter" in run.collectives
