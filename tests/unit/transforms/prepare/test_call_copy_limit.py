"""Programs whose calls multiply."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.cli import opt
from shardy_py.errors import UnsupportedError

pytest.importorskip("jaxlib")


def tree(depth: int) -> str:
    """Return a module in which each function but the last calls the next one twice."""
    texts = ['sdy.mesh @mesh = <["x"=2]>']
    for number in range(depth):
        name = f"private @f{number}" if number else "@main"
        call = f"func.call @f{number + 1}"
        type_ = "(tensor<8xf32>) -> tensor<8xf32>"
        body = f"%b = {call}(%a) : {type_}\n%c = {call}(%b) : {type_}"
        if number == depth - 1:
            body = "%c = stablehlo.negate %a : tensor<8xf32>"
        sharding = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}' if not number else ""
        head = f"func.func {name}(%a: tensor<8xf32> {sharding}) -> tensor<8xf32>"
        texts.append(f"{head} {{\n{body}\nreturn %c : tensor<8xf32>\n}}")
    return "\n".join(texts)


def test_doubling_calls_are_refused() -> None:
    """A tree of calls that would be copied a billion times is an error that names the option that helps."""
    with pytest.raises(UnsupportedError, match=r"@f29 alone would have 536,870,912 copies") as error:
        sdy.propagate(tree(30))
    assert "--dedup-functions-fully" in error.value.diagnostics[0].hint
    assert error.value.diagnostics[0].location


def test_shared_functions_are_not_copied() -> None:
    """With the option the same program is propagated: every function is sharded once, for all its calls."""
    result = sdy.propagate(tree(30), dedup_functions_fully=True)
    assert result.text.count("func.func") == 30
    assert result.results[0] is not None


def test_small_trees_are_copied() -> None:
    """Calls that multiply a little are no problem; the copies are sharded alike, and united again."""
    result = sdy.propagate(tree(6))
    assert [text.count("stablehlo.negate") for text in (result.text, tree(6))] == [1, 1]
    assert str(result.results[0]) == '<@mesh, [{"x"}]>'


@pytest.mark.parametrize("name", ["sdy-flatten-call-graph", "sdy-import-func-calls"])
def test_the_passes_alone_refuse_too(name: str, tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    """Each pass that copies functions has the limit."""
    path = tmp_path / "m.mlir"
    path.write_text(tree(40))
    assert opt.main([f"-{name}", str(path)]) == 1
    assert "the calls of functions in each other multiply" in capsys.readouterr().err
