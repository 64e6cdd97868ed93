"""Attributes arrive in Python alike, whichever frontend reads them."""

import pytest

pytest.importorskip("xdsl")

from shardy_py.api.source import read_program

ATTRIBUTES = {
    "flag": ("true", True),
    "number": ("3 : i32", 3),
    "factor": ("1.5 : f32", 1.5),
    "word": ('"SAME"', "SAME"),
    "dims": ("array<i64: 1, 2>", (1, 2)),
    "flags": ("array<i1: true, false>", (True, False)),
    "sizes": ("array<f32: 1.0, 2.0>", (1.0, 2.0)),
    "mixed": ('[1 : i64, "a"]', (1, "a")),
    "named": ("{a = 1 : i64}", {"a": 1}),
}
BODY = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = "toy.f"(%x) {{{attributes}}} : (tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}}""".format(attributes=", ".join(f"{name} = {text}" for name, (text, _) in ATTRIBUTES.items()))


def test_both_frontends_decode_alike():
    """Each kind of attribute has one form in Python, with the same types of its parts."""
    from shardy_py.frontends.xdsl import parse_module

    for source in (BODY, parse_module(f"builtin.module {{ {BODY} }}")):
        op = next(op for op in read_program(source).walk() if op.name == "toy.f")
        found = {name: op.attributes[name] for name in ATTRIBUTES}
        assert found == {name: value for name, (_, value) in ATTRIBUTES.items()}
        assert [type(item) for item in found["flags"]] == [bool, bool]
        assert {name: type(value) for name, value in found.items()} == {
            name: type(value) for name, (_, value) in ATTRIBUTES.items()
        }
