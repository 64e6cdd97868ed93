"""Values behind any number of reshards are known by the tensor that is moved."""

from __future__ import annotations

import pytest

import shardy_py as sdy

pytest.importorskip("jaxlib", reason="the program is an MLIR module")


def test_a_value_behind_a_long_chain_of_reshards_is_explained() -> None:
    """The result of a hundred constraints is that of a hundred reshards in the text of the result."""
    type_, dims = "tensor<8x8xf32>", ('{"x"}, {}', '{}, {"x"}')
    lines = [
        f"%{i} = sdy.sharding_constraint %{i - 1 if i else 'a'} <@mesh, [{dims[(i + 1) % 2]}]> : {type_}"
        for i in range(100)
    ]
    text = (
        'sdy.mesh @mesh = <["x"=2]>\n'
        f'func.func @main(%a: {type_} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> {type_} {{\n'
        + "\n".join(lines)
        + f"\nreturn %99 : {type_}\n}}\n"
    )
    result = sdy.propagate(text, trace=True)
    returned = list(result.main.regions[0].blocks[0].ops)[-1].operands[0]
    assert result.explain(returned).dimensions[0].present[0].axis == '"x"'
