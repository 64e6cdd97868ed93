"""HLO text to programs."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="HLO is read by XLA's parser in jaxlib")

from shardy_py.errors import ParseError, UnsupportedError
from shardy_py.ir.graph.types import tensor
from shardy_py.jax.hlo import import_hlo, worker
from shardy_py.jax.hlo import parser_process as parsing
from shardy_py.jax.hlo.parser_process import PARSER, ParserProcess

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


def test_the_program_of_one_device_is_refused() -> None:
    """A compiled program has the shapes of shards, and shardings of whole tensors; it can be looked at otherwise."""
    from shardy_py import propagate

    text = """
    HloModule m, is_scheduled=true, num_partitions=2
    ENTRY main {
      a = f32[4,8] parameter(0), sharding={devices=[2,1]<=[2]}
      ROOT s = f32[4,8] negate(a)
    }"""
    assert import_hlo(text).name == "m"
    with pytest.raises(UnsupportedError, match="the module is what each of 2 devices runs"):
        propagate(text)
    for same in ("num_partitions=1", "replica_count=2"):
        assert propagate(text.replace("num_partitions=2", same), {"x": 2}).arguments
    assert propagate(text.replace("is_scheduled=true, ", ""), {"x": 2}).arguments


def test_shardings_of_parts_of_tuples() -> None:
    """They become those of the results where the tuple has none."""
    from shardy_py import propagate

    text = """
    HloModule m
    ENTRY main {
      a = f32[4,8] parameter(0)
      q = (f32[4,8], f32[8]) custom-call(a), custom_call_target="foo"
      t = f32[8] get-tuple-element(q), index=1, sharding={devices=[2]<=[2]}
      ROOT s = f32[8] negate(t)
    }"""
    assert str(propagate(text, {"x": 2}).results[0]) == '<@mesh, [{"x"}]>'


def test_custom_calls_with_several_results() -> None:
    """Their tuples go, also where not all parts are used; rules of Shardy are kept in modules without meshes."""
    from shardy_py import propagate

    text = """
    HloModule m
    ENTRY main {
      a = f32[4,8] parameter(0)
      q = (f32[4,8], f32[8], s32[]) custom-call(a), custom_call_target="foo", frontend_attributes={
        xla.sdy.sharding_rule="#sdy.op_sharding_rule<([i, j])->([i, k], [j], []) {i=4, j=8, k=8}, custom>"}
      t = f32[8] get-tuple-element(q), index=1
      r = f32[4,8] get-tuple-element(q), index=0
      pair = (f32[4,8], f32[8]) tuple(r, t)
      s = f32[4,8] get-tuple-element(pair), index=0
      ROOT out = (f32[8], f32[4,8]) tuple(t, s)
    }"""
    result = propagate(text, {"x": 2, "y": 2}, in_shardings={0: ("x", "y")})
    assert [str(sharding) for sharding in result.results] == ['<@mesh, [{"y"}]>', '<@mesh, [{"x"}, {}]>']
    assert "tuple<" not in result.text
    assert result.text == propagate(import_hlo(text).stablehlo, {"x": 2, "y": 2}, in_shardings={0: ("x", "y")}).text


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


@pytest.mark.parametrize(
    ("metadata", "extra", "place"),
    [
        ("", "", "m.hlo:6:3"),
        (', metadata={op_name="jit(f)/add"}', "", "m.hlo:6:3"),
        (', metadata={op_name="jit(f)/add"}', '  d = f32[4] add(a, c), metadata={op_name="jit(f)/add"}\n', "m.hlo"),
    ],
)
def test_wrong_types_are_located(tmp_path: Path, metadata: str, extra: str, place: str) -> None:
    """An error of MLIR names the line of the instruction, by its name or metadata; no line where several have these."""
    path = tmp_path / "m.hlo"
    path.write_text(
        "HloModule m\n\nENTRY e {\n  a = f32[4] parameter(0)\n  c = f32[4] negate(a)\n"
        f"  ROOT b = f32[5] add(a, c){metadata}\n{extra}}}\n"
    )
    with pytest.raises(ParseError) as error:
        import_hlo(path)
    (actual,) = error.value.diagnostics
    assert actual.location == str(tmp_path / place)
    assert actual.op == "stablehlo.add"
    assert not actual.hint


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


ABORTS = TEXT.replace("parameter(1)", "parameter(5)")


@pytest.fixture
def parser():
    """A process of the parser that has read no text."""
    process = ParserProcess()
    yield process
    process.close()


def test_the_bindings_of_older_versions(monkeypatch):
    """Before jaxlib 0.10 the bindings of HLO have no module of their own."""
    from jaxlib import _jax

    monkeypatch.setitem(sys.modules, "jaxlib._hlo", None)
    assert worker._bindings() is _jax


def test_one_process_reads_all_texts(parser) -> None:
    """What is said of a text is the same from a new process and from one that has read others; errors do not end it."""
    first = parser.convert(TEXT, "-")
    process = parser._child.pid
    assert "error" in parser.convert("HloModule", "-")
    assert parser.convert(TEXT, "-") == first
    assert parser._child.pid == process


def test_a_text_may_end_the_process(parser) -> None:
    """A text that XLA aborts on is an error with XLA's reason, first and later, and the next text is read."""
    for _ in range(2):
        with pytest.raises(ParseError, match="aborts on this text: Check failed: param_no") as caught:
            parser.convert(ABORTS, "m.hlo")
        assert (caught.value.diagnostics[0].code, caught.value.diagnostics[0].location) == ("parser-aborted", "m.hlo")
        assert parser.convert(TEXT, "-")["name"] == "m"


def test_a_process_that_has_ended_is_replaced(parser) -> None:
    """A process that ends between two texts, as an idle one does, is started anew."""
    first = parser.convert(TEXT, "-")
    os.kill(parser._child.pid, signal.SIGTERM)
    parser._child._process.wait()
    assert parser.convert(TEXT, "-") == first


def test_a_text_that_takes_too_long(parser, monkeypatch) -> None:
    """The process is ended when the time is up, and the next text is read."""
    monkeypatch.setattr(parsing, "SECONDS", 0)
    with pytest.raises(ParseError, match="did not end within 0 seconds"):
        parser.convert(TEXT, "-")
    monkeypatch.undo()
    assert parser.convert(TEXT, "-")["name"] == "m"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_process_has_a_parser_of_its_own() -> None:
    """Both processes go on to read HLO after a fork."""
    answer = PARSER.convert(TEXT, "-")
    child = os.fork()
    if child == 0:
        os._exit(0 if PARSER.convert(TEXT, "-") == answer else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert PARSER.convert(TEXT, "-") == answer
