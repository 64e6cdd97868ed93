"""Every form in which a program of JAX is held propagates to the same."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

from shardy_py import OptionError, ParseError, UnsupportedError, propagate
from tests.integration.jax_programs import MESH, PROGRAMS, array, lower, over, partitioner

SHAPES = ({"w": array(32, 64), "b": array(64)}, array(16, 32))
NAMES = ["params['b']", "params['w']", "x"]


def plain(params, x, *, scale=2.0):
    """A layer with its parameters in a dictionary."""
    y = x @ params["w"] + params["b"]
    return {"y": y * scale, "norm": jnp.sum(y * y)}


model = jax.jit(plain)
SHARDED = jax.jit(plain, in_shardings=({"w": over(None, "y"), "b": over()}, over("x")), out_shardings=None)


def _tiles(result: Any) -> list[str]:
    return [re.sub("@[a-z]+", "", str(sharding)) for sharding in (*result.arguments, *result.results)]


def _lowered() -> Any:
    return SHARDED.trace(*SHAPES).lower(lowering_platforms=("cpu",))


def _exported() -> Any:
    return jax.export.export(SHARDED, platforms=["cpu"])(*SHAPES)


def _bytecode(module: Any) -> bytes:
    buffer = BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


FORMS = {
    "lowered": _lowered,
    "traced": lambda: SHARDED.trace(*SHAPES),
    "text": lambda: _lowered().as_text(),
    "text with locations": lambda: _lowered().as_text(debug_info=True),
    "bytecode": lambda: _bytecode(_lowered().compiler_ir("stablehlo")),
    "module": lambda: _lowered().compiler_ir("stablehlo"),
    "exported": _exported,
    "portable artifact": lambda: _exported().mlir_module_serialized,
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_are_the_same_program(form: str) -> None:
    """Each form of a function propagates to the same shardings at its interface."""
    result = propagate(FORMS[form]())
    assert _tiles(result) == ["<, [{}]>", '<, [{}, {"y"}]>', '<, [{"x"}, {}]>', "None", '<, [{"x"}, {"y"}]>']


def test_a_function_with_arguments() -> None:
    """A jitted function is lowered for example arguments, by position and by keyword; arrays are fine, too."""
    expected = _tiles(propagate(_lowered()))
    assert _tiles(propagate(SHARDED, args=SHAPES)) == expected
    result = propagate(model, {"x": 4}, args=SHAPES, kwargs={"scale": 3.0}, in_shardings={"scale": ()})
    assert str(result.arguments[3]) == "<@mesh, []>"
    params = {name: jnp.zeros(shape.shape) for name, shape in SHAPES[0].items()}
    result = propagate(model, {"x": 4}, args=(params, jnp.zeros((16, 32))), in_shardings={"x": ("x",)})
    assert str(result.results[1]) == '<@mesh, [{"x"}, {}]>'


def test_serialized_exports(tmp_path: Path) -> None:
    """What `Exported.serialize` returns is read as bytes, as a bytearray and from a file."""
    pytest.importorskip("flatbuffers")
    data = _exported().serialize()
    (tmp_path / "model.bin").write_bytes(data)
    expected = _tiles(propagate(_lowered()))
    assert [_tiles(propagate(form)) for form in (data, bytes(data), tmp_path / "model.bin")] == [expected] * 3


def test_exports_without_the_shardy_partitioner() -> None:
    """An export with shardings of GSPMD is read as well; a derived mesh has the same tiles."""
    with partitioner(shardy=False):
        exported = _exported()
    actual = _tiles(propagate(exported, {"x": 4, "y": 2}))
    assert actual == _tiles(propagate(_lowered()))


def test_hlo_text() -> None:
    """HLO text with shardings propagates: XLA's own conversion keeps them as attributes."""
    text = """HloModule m, num_partitions=4
    ENTRY main {
      a = f32[8,16] parameter(0), sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}
      b = f32[16,8] parameter(1), sharding={devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate}
      ROOT c = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }"""
    result = propagate(text, {"x": 2, "y": 2})
    assert _tiles(result) == ['<, [{"x"}, {}]>', '<, [{}, {"y"}]>', '<, [{"x"}, {"y"}]>']


def test_arguments_and_results_have_the_names_of_jax() -> None:
    """Shardings are given by the names that JAX gives to parts of pytrees; parameters of no use keep the others'."""
    ins = {"params['w']": (None, "y"), "x": ("x",)}
    result = propagate(model, {"x": 4, "y": 2}, args=SHAPES, in_shardings=ins, out_shardings={"result['y']": ()})
    assert _tiles(result) == ['<, [{"y"}]>', '<, [{}, {"y"}]>', '<, [{"x"}, {}]>', "None", "<, [{}, {}]>"]
    with pytest.raises(OptionError, match=r"no argument 'w'.*\n.*its arguments are arg0 to arg2, called params\['b'\]"):
        propagate(model, {"x": 4}, args=SHAPES, in_shardings={"w": ("x",)})
    with pytest.raises(OptionError, match=r"no result 'y'.*\n.*called result\['norm'\], result\['y'\]"):
        propagate(model, {"x": 4}, args=SHAPES, out_shardings={"y": ("x",)})


def test_an_output_sharding_is_that_of_jax() -> None:
    """A sharding given for a result leads to the same module as JAX's ``out_shardings``."""
    shardings = {"y": over(None, "x"), "norm": over()}
    expected = propagate(jax.jit(plain, out_shardings=shardings), args=SHAPES)
    result = propagate(model, args=SHAPES, out_shardings=[shardings["norm"], shardings["y"]])
    count = "mhlo.num_partitions = 8"
    assert str(result).replace("mhlo.num_partitions = 1", count) == str(expected)
    assert str(result.results[1]) == '<@mesh, [{}, {"x"}]>'


@pytest.mark.parametrize(
    ("form", "error", "message"),
    [
        (lambda: model, UnsupportedError, r"arguments-needed\]\n  hint: .*propagate\(f, args="),
        (lambda: print, UnsupportedError, "unknown-input"),
        (
            lambda: jax.export.export(model, platforms=["cpu", "cuda"])(*SHAPES),
            UnsupportedError,
            r"several platforms: cpu, cuda .*\n.*platforms=\['cpu'\]",
        ),
        (
            lambda: jax.export.export(jax.jit(jnp.sin))(
                jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 3"), "float32")
            ),
            UnsupportedError,
            r"symbolic dimensions: argument 0 has the shape \(n, 3\)",
        ),
        (lambda: b"\x00\x01ML\xefR\x00 other bytes", ParseError, "no serialized export"),
        (lambda: b"ML\xefR\rStableHLO_v9.99.0\x00\x01", ParseError, "portable artifact cannot be read"),
        (lambda: SHARDED.trace(*SHAPES).lower(lowering_platforms=("cpu",)).as_text()[:200], ParseError, "malformed"),
    ],
)
def test_what_is_no_program_says_what_to_do(form: Any, error: type[Exception], message: str) -> None:
    """Other forms are refused with the call to make."""
    with pytest.raises(error, match=message):
        propagate(form())


def test_arguments_that_do_not_fit() -> None:
    """Arguments for what is no function, and ones that JAX cannot lower, are errors that say so."""
    with pytest.raises(OptionError, match=r"not for a Lowered \[unexpected-arguments\]"):
        propagate(_lowered(), args=SHAPES)
    with pytest.raises(OptionError, match=r"not for a function .*\n.*jax\.jit\(f\)"):
        propagate(lambda x: x, args=SHAPES)
    with pytest.raises(OptionError, match=r"JAX cannot lower the function: TypeError: .*missing 1 required"):
        propagate(model, args=SHAPES[:1])


QUICK = ("shards_twice",)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS]
)
@pytest.mark.parametrize("shardy", [True, False])
def test_hlo_text_of_jax(name: str, shardy: bool) -> None:
    """HLO text keeps what JAX says, as texts of Shardy or as shardings of GSPMD: the same arguments come out."""
    expected = propagate(lower(name, shardy=True), MESH)
    result = propagate(lower(name, shardy=shardy).as_text("hlo"), MESH)
    assert result.arguments == expected.arguments
    if shardy:
        assert result.results == expected.results
    assert "mhlo.sharding" not in str(result)
