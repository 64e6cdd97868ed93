"""Reductions other than sums, in texts that jaxlib's parser does not read, come in and go out as they were written."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

import shardy_py as sdy
from shardy_py.errors import ParseError
from shardy_py.frontends.mlir import import_module, parse_module, print_module, write_back
from shardy_py.frontends.mlir.newer_text import is_newer, to_newer, to_older

T = "tensor<16x8xf32>"


def module(*lines: str, argument: str = '[{"y"}, {}], unreduced=max{"x"}', result: str = "%arg0") -> str:
    """Return a module with an argument of a sharding."""
    body = "".join(f"    {line}\n" for line in (*lines, f"return {result} : {T}"))
    return (
        f'module {{\n  sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
        f"  func.func @main(%arg0: {T} {{sdy.sharding = #sdy.sharding<@mesh, {argument}>}}) -> {T} {{\n{body}  }}\n}}\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        module(),
        module(argument='[{"y"}, {}], unreduced=min{"x"}'),
        module(argument='[{}, {}], unreduced=max{"x", "y"}'),
        module(argument='[{}, {}], unreduced=min{"x":(1)2}').replace('"x"=2', '"x"=4'),
        module(f'%0 = sdy.all_reduce max {{"x"}} %arg0 out_sharding=<@mesh, [{{"y"}}, {{}}]> : {T}', result="%0"),
        module(
            f'%0 = sdy.reduce_scatter min [{{"x"}}, {{}}] %arg0 out_sharding=<@mesh, [{{"y", "x"}}, {{}}]>'
            f' {{name = "a}}b"}} : {T}',
            argument='[{"y"}, {}], unreduced=min{"x"}',
            result="%0",
        ),
        module(f'%0 = sdy.reshard %arg0 <@mesh, [{{}}, {{}}], unreduced=max{{"x"}}> : {T}', result="%0"),
        module().replace('@mesh, [{"y"}', 'mesh<["x"=2, "y"=2]>, [{"y"}'),
    ],
)
def test_newer_text_is_printed_as_it_was_written(text: str) -> None:
    """What jaxlib does not read is read, and printed again."""
    assert is_newer(text)
    assert print_module(write_back(import_module(parse_module(text)))) == text


def test_the_op_graph_has_the_reduction() -> None:
    """The axis that stands for the reduction is nowhere in the op graph."""
    program = import_module(parse_module(module()))
    assert str(program.meshes["mesh"]) == '<["x"=2, "y"=2]>'
    (argument,) = program.functions["main"].attributes["arg_attrs"]
    sharding = argument["sdy.sharding"]
    assert (sharding.reduction_op, str(sharding.unreduced_axes[0])) == ("max", '"x"')


def test_sums_are_spelled_either_way() -> None:
    """The word for a sum may be left out; it is as Shardy prints it."""
    text = module(argument='[{"y"}, {}], unreduced=sum{"x"}')
    assert print_module(parse_module(text)) == text.replace("=sum{", "={")


def test_propagation_combines_by_the_reduction() -> None:
    """A reshard to a whole tensor becomes an all-reduce of the reduction, in the newer text."""
    text = module(f"%0 = sdy.reshard %arg0 <@mesh, [{{}}, {{}}]> : {T}", result="%0")
    assert 'sdy.all_reduce max {"x"}' in sdy.propagate(text, explicit_collectives=True).text


def test_strings_and_comments_are_left_alone() -> None:
    """Only the text of shardings is newer, not what looks like it."""
    text = f'// unreduced=max{{"x"}}\nmodule attributes {{a.b = "sdy.all_reduce max {{"}} {{\n{module()}}}'
    assert to_older(to_newer(text)).startswith(
        '// unreduced=max{"x"}\nmodule attributes {a.b = "sdy.all_reduce max {"}'
    )
    assert not is_newer('"unreduced=max{" // sdy.all_reduce max {')


def test_what_is_wrong_in_newer_text_is_an_error() -> None:
    """An unknown reduction, and a newer text that is wrong otherwise, are errors with a place."""
    with pytest.raises(ParseError, match=r"^-:3:\d+: error: "):
        parse_module(module(argument='[{"y"}, {}], unreduced=most{"x"}'))
    with pytest.raises(ParseError, match=r"^-:3:\d+: error: .*unreduced axes"):
        parse_module(module(argument='[{"y"}, {}], unreduced=max{"z"}'))
