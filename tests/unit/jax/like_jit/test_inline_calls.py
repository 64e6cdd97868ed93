"""Calls of HLO modules are inlined as XLA inlines them."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("jaxlib")
from jaxlib import _hlo

from shardy_py.jax.like_jit.hlo_module import HloModuleProto
from shardy_py.jax.like_jit.inline_calls import inline_calls

NESTED = """HloModule m
inner { a = f32[4] parameter(0)
  ROOT s = f32[4] sine(a), metadata={op_name="sin" source_file="f.py" source_line=3} }
outer { b = f32[4] parameter(0)
  c = f32[4] call(b), to_apply=inner, metadata={op_name="inner"}
  ROOT d = (f32[4], f32[4]) tuple(c, b) }
ENTRY main { x = f32[4] parameter(0)
  t = (f32[4], f32[4]) call(x), to_apply=outer, metadata={op_name="jit(f)/outer"}
  u = f32[4] get-tuple-element(t), index=0
  ROOT r = f32[4] add(u, x), metadata={op_name="jit(f)/add"} }
"""
DEAD = """HloModule m
f { a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  unused = f32[4] cosine(b)
  ROOT s = f32[4] sine(a) }
ENTRY main { x = f32[4] parameter(0)
  y = f32[4] exponential(x)
  z = f32[4] custom-call(x), custom_call_target="print", custom_call_has_side_effect=true
  ROOT c = f32[4] call(x, y), to_apply=f }
"""
LOOP = """HloModule m
step { a = f32[4] parameter(0)
  ROOT s = f32[4] sine(a) }
body { p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[4] get-tuple-element(p), index=1
  w = f32[4] call(v), to_apply=step
  ROOT r = (s32[], f32[4]) tuple(i, w) }
condition { p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ten = s32[] constant(10)
  ROOT r = pred[] compare(i, ten), direction=LT }
ENTRY main { x = (s32[], f32[4]) parameter(0)
  ROOT w = (s32[], f32[4]) while(x), condition=condition, body=body }
"""


def _inlined(text: str) -> str:
    module = _hlo.hlo_module_from_text(text)
    data = inline_calls(module.as_serialized_hlo_module_proto())
    computation = _hlo.XlaComputation(data)
    return computation.as_hlo_text()


def _instructions(text: str, computation: str = "ENTRY") -> list[str]:
    body = text[text.index(computation) :].partition("\n}")[0]
    return re.findall(r" ([a-z][\w-]*)\(", body)


def test_calls_within_calls() -> None:
    """What a call calls stands in its place, calls of callees first, with the path of the calls in its name stack."""
    text = _inlined(NESTED)
    assert "call(" not in text
    assert "inner {" not in text
    assert _instructions(text) == ["parameter", "sine", "tuple", "get-tuple-element", "add"]


def test_the_path_of_calls() -> None:
    """Ops keep their place in the source, and say through which calls they came."""
    module = _hlo.hlo_module_from_text(NESTED)
    data = inline_calls(module.as_serialized_hlo_module_proto())
    assert b"jit(f)/outer/inner/sin" in data
    assert b"f.py" in data


def test_what_a_callee_does_not_use_is_dead() -> None:
    """Where anything was inlined, dead instructions go, but those with side effects."""
    assert sorted(_instructions(_inlined(DEAD))) == ["custom-call", "parameter", "sine"]


def test_calls_in_loops() -> None:
    """Calls in the body of a loop are inlined, too."""
    text = _inlined(LOOP)
    assert "call(" not in text
    assert _instructions(text, "body") == ["parameter", "get-tuple-element", "get-tuple-element", "sine", "tuple"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("to_apply=step", 'to_apply=step, frontend_attributes={inlineable="false"}'),
        ("to_apply=step", 'to_apply=step, frontend_attributes={_xla_compute_type="host"}'),
        ("to_apply=step", 'to_apply=step, backend_config="of a backend"'),
        ("step", "xla.sdy.manual_computation_body_3"),
    ],
)
def test_calls_that_stay(before: str, after: str) -> None:
    """Calls that are marked, and those of manual computations, stay; then nothing changes at all."""
    data = _hlo.hlo_module_from_text(LOOP.replace(before, after)).as_serialized_hlo_module_proto()
    assert inline_calls(data) is data


def test_control_predecessors() -> None:
    """An instruction that has to run before another stays before it."""
    text = NESTED.replace("ROOT r = f32[4] add(u, x)", "ROOT r = f32[4] add(u, x), control-predecessors={t}")
    data = inline_calls(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())
    entry = HloModuleProto(data).entry
    assert [item.name for item in entry.root.control_predecessors] == [b"d.inlined2"]


def test_many_calls_in_each_other() -> None:
    """Calls may be nested more deeply than Python's own stack."""
    functions = "\n".join(
        f"g{number} {{ a = f32[4] parameter(0)\n ROOT r = f32[4] call(a), to_apply=g{number - 1} }}"
        for number in range(1, 1500)
    )
    text = f"HloModule m\ng0 {{ a = f32[4] parameter(0)\n ROOT s = f32[4] sine(a) }}\n{functions}\n"
    text += "ENTRY main { x = f32[4] parameter(0)\n ROOT r = f32[4] call(x), to_apply=g1499 }"
    assert _instructions(_inlined(text)) == ["parameter", "sine"]
