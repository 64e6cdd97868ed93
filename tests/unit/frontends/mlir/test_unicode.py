"""Strings of modules that are no UTF-8, and numbers of thousands of digits."""

from __future__ import annotations

import io

import pytest

import shardy_py as sdy
from shardy_py.errors import ParseError
from shardy_py.frontends.mlir.load import has_bad_strings, refuse_bad_names

pytest.importorskip("jaxlib")

MODULE = r"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
NEGATE = "stablehlo.negate %a : tensor<8xf32>"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"x"', r'"\FF"'),
        ('"x"', r'"\ED\A0\80"'),
        ("@mesh", r'@"m\FF"'),
        ("@main", r'@"f\C3"'),
        ("negate %a", r'negate %a {"a\FF" = 1}'),
        (NEGATE, r'"toy.b\FF"(%a) : (tensor<8xf32>) -> tensor<8xf32>'),
        ("{sdy.sharding", r'{"toy.a\FF" = 1, sdy.sharding'),
        ('[{"x"}]', r'[{"y\FF"}]'),
    ],
)
def test_a_name_that_is_no_unicode_is_refused(old: str, new: str) -> None:
    """Each kind of name is an error with its place; jaxlib ends the process on some of them."""
    with pytest.raises(ParseError, match="not valid UTF-8") as error:
        sdy.propagate(MODULE.replace(old, new))
    assert error.value.diagnostics[0].location.startswith("-:")


def test_a_name_of_bytes_is_refused() -> None:
    """The bytes themselves count as their escapes do."""
    with pytest.raises(ParseError, match="not valid UTF-8"):
        sdy.propagate(MODULE.replace("@main", '@"\xff"').encode("latin-1"))


def test_values_may_be_any_bytes() -> None:
    """The value of an attribute keeps its bytes."""
    result = sdy.propagate(MODULE.replace("negate %a", r'negate %a {toy.code = "\FF\00a"}'))
    assert r'toy.code = "\FF\00a"' in result.text


def test_other_characters_are_names() -> None:
    """Names in UTF-8 of any script are kept, escaped or not."""
    result = sdy.propagate(MODULE.replace('"x"', r'"é\C3\A9"').replace("@main", '@"größe"'))
    assert r'"\C3\A9\C3\A9"' in result.text
    refuse_bad_names(rb'@"\\FF" // "\FF', "-")


def test_strings_of_bytecode_are_looked_at() -> None:
    """Bytecode with such strings is found out, other bytecode is not, nor what is none."""
    from shardy_py.frontends.mlir.load import parse_here

    codes = []
    for text in (MODULE, MODULE.replace("negate %a", r'negate %a {toy.code = "\FF"}')):
        buffer = io.BytesIO()
        parse_here(text.encode(), "-").operation.write_bytecode(buffer)
        codes.append(buffer.getvalue())
    assert [has_bad_strings(code) for code in codes] == [False, True]
    assert not any(has_bad_strings(codes[0][:size]) for size in range(4, 40))
    assert r'toy.code = "\FF"' in sdy.propagate(codes[1]).text


def test_a_number_of_many_digits_is_refused() -> None:
    """MLIR, which takes the square of the number of digits, is not asked; digits in a string are no number."""
    with pytest.raises(ParseError, match="more than 2000 digits") as error:
        sdy.propagate(MODULE.replace("negate %a", f"negate %a {{toy.a = {'9' * 100_000}}}"))
    assert error.value.diagnostics[0].location == "-:3:37"
    sdy.propagate(MODULE.replace("negate %a", f'negate %a {{toy.a = "{"9" * 100_000}"}}'))
