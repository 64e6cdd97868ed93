"""HLO text to programs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="HLO is read by XLA's parser in jaxlib")

from shardy_py.errors import ParseError
from shardy_py.frontends.hlo import import_hlo
from shardy_py.ir.types import tensor

TEXT = """\
HloModule m, entry_computation_layout={(f32[4,8]{0,1:T(8,128)}, s32[])->(f32[8]{0:T(128)}, f32[4,8]{1,0:S(1)})}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (p0: f32[4,8], p1: s32[]) -> (f32[8], f32[4,8]) {
  %p0 = f32[4,8]{0,1:T(8,128)} parameter(0), metadata={op_name="not a shape: f32[2]{1,1}"}
  %p1 = s32[] parameter(1)
  %c = f32[] constant(0)
  %r = f32[8]{0:T(128)} reduce(%p0, %c), dimensions={0}, to_apply=%add
  %x = f32[4,8]{1,0:S(1)} negate(%p0)
  ROOT %t = (f32[8]{0:T(128)}, f32[4,8]{1,0:S(1)}) tuple(%r, %x)
}
"""


def test_program_and_layouts(tmp_path: Path) -> None:
    """The entry becomes the main function, its layouts are kept with tiles and memory spaces."""
    module = import_hlo(TEXT)
    assert module.name == "m"
    main = module.program.functions["main"]
    assert [value.type for value in main.regions[0].blocks[0].arguments] == [tensor(4, 8), tensor(dtype="i32")]
    assert "stablehlo.reduce" in [op.name for op in module.program.walk()]
    assert [str(shape) for shape in module.parameters] == ["f32[4,8]{0,1:T(8,128)}", "s32[]"]
    assert str(module.result) == "(f32[8]{0:T(128)}, f32[4,8]{1,0:S(1)})"
    assert any("layout" in name for name in module.program.attributes)
    (tmp_path / "m.hlo").write_text(TEXT)
    assert import_hlo(tmp_path / "m.hlo").parameters == module.parameters


def test_it_can_be_propagated() -> None:
    """What comes out is a module `propagate` takes."""
    from shardy_py import propagate

    result = propagate(import_hlo(TEXT).stablehlo, {"x": 2}, in_shardings={0: (None, "x")})
    assert [str(sharding) for sharding in result.results] == ['<@mesh, [{"x"}]>', '<@mesh, [{}, {"x"}]>']


@pytest.mark.parametrize(
    ("old", "new", "place", "reason"),
    [
        ("f32[8]{0:T(128)} reduce", "f32[8]{0:T(-1)} reduce", "-:13:19", "-1 where a tile size"),
        ("{1,0:S(1)} negate", "{1,1:S(1)} negate", "-:14:19", "dimension 1 stands twice"),
        ("negate(%p0)", "negate(%p7)", "-:14:35", "does not exist: p7"),
    ],
)
def test_refused(old: str, new: str, place: str, reason: str) -> None:
    """What is not valid is refused with its place, before XLA can abort on it."""
    with pytest.raises(ParseError, match=reason) as caught:
        import_hlo(TEXT.replace(old, new))
    assert caught.value.diagnostics[0].location.startswith(place)


def test_unreadable(tmp_path: Path) -> None:
    """A file that is not there is an error that names it."""
    with pytest.raises(ParseError, match="nowhere"):
        import_hlo(tmp_path / "nowhere")


def test_hlo_is_a_program_like_any_other(tmp_path):
    """`propagate` takes HLO text, bytes, a file and a module that was read, and gives the same for each."""
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    from shardy_py import propagate

    arguments = {"mesh": {"x": 2}, "in_shardings": {0: (None, "x")}}
    texts = {propagate(source, **arguments).text for source in (TEXT, TEXT.encode(), path, import_hlo(TEXT))}
    assert len(texts) == 1
    assert "sdy.sharding" in texts.pop()
