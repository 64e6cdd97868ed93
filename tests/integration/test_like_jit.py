"""Programs of JAX are propagated as `jax.jit` propagates them; other modules as they are."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest

pytest.importorskip("jax")
import jax
import jax.numpy as jnp
from jax import lax

from shardy_py import Session, propagate
from shardy_py.api.source import read_apart
from shardy_py.jax.like_jit import ConversionError, jaxlib_version
from shardy_py.jax.like_jit import read as reading
from tests.integration.jax_programs import array, over, partitioner


def function(params, x):
    """Ops that JAX writes in CHLO, which stop propagation unless they are expanded."""

    def step(carry, _):
        return jnp.square(carry @ params["w"]), carry.sum()

    y, sums = lax.scan(step, x, None, length=3)
    return {"y": y, "top": lax.top_k(y, 4)}, sums


SHAPES = ({"w": array(16, 16)}, array(32, 16, by=over("x")))
JITTED = jax.jit(function, donate_argnums=1)


def lowered() -> Any:
    """Return the function, lowered for devices that need not be there."""
    return JITTED.trace(*SHAPES).lower(lowering_platforms=("cpu",))


def exported() -> Any:
    """Return the function, exported."""
    return jax.export.export(JITTED, platforms=["cpu"])(*SHAPES)


def shardings(result: Any) -> list[str]:
    """Return the shardings of arguments and results without their mesh."""
    return [str(item).partition(",")[2] for item in (*result.arguments, *result.results)]


LIKE_JIT = ["", ' [{"x"}, {}]>', ' [{"x"}, {}]>', ' [{"x"}, {}]>', ' [{"x"}, {}]>', ""]


@pytest.mark.parametrize(
    "form",
    [
        lowered,
        lambda: JITTED.trace(*SHAPES),
        exported,
        lambda: bytes(exported().serialize()),
        lambda: lowered().as_text("hlo"),
        lambda: read_apart(bytes(exported().serialize())),
    ],
    ids=["lowered", "traced", "exported", "serialized", "hlo", "serialized, apart"],
)
def test_programs_of_jax_are_like_jit(form: Any) -> None:
    """Sharding passes the square and the top-k, as in `jax.jit`; the result says so, with the version of jaxlib."""
    result = propagate(form())
    assert (result.like, result.jaxlib, result.warnings) == ("jit", jaxlib_version(), ())
    assert shardings(result) == LIKE_JIT
    assert "chlo." not in result.text
    assert "func.call" not in result.text


def test_a_function_with_arguments_is_like_jit() -> None:
    """A jitted function with example arguments is a program of JAX."""
    result = propagate(JITTED, args=SHAPES)
    assert (result.like, shardings(result)) == ("jit", LIKE_JIT)


def test_a_serialized_export_in_a_file(tmp_path) -> None:
    """A file with an export is one, too."""
    path = tmp_path / "model.bin"
    path.write_bytes(exported().serialize())
    assert propagate(path).like == "jit"


@pytest.mark.parametrize("form", ["text", "module", "bytes", "artifact"])
def test_modules_are_propagated_as_they_are(form: str) -> None:
    """MLIR is propagated as Shardy's passes propagate it, whoever wrote it; ``like="jit"`` asks for the other."""
    buffer = BytesIO()
    lowered().compiler_ir("stablehlo").operation.write_bytecode(buffer)
    module: Any = {
        "text": lowered().as_text(),
        "module": None,
        "bytes": buffer.getvalue(),
        "artifact": exported().mlir_module_serialized,
    }[form]
    if form == "module":
        from shardy_py.frontends.mlir import parse_module

        module = parse_module(lowered().as_text())
    asked = propagate(module, like="jit")
    assert (asked.like, shardings(asked)) == ("jit", LIKE_JIT)
    result = propagate(module)
    assert (result.like, result.jaxlib) == ("passes", "")
    assert ("chlo.square" if form != "artifact" else "call @") in result.text


def test_passes_is_todays_way() -> None:
    """A lowered program can be propagated as it is."""
    result = propagate(lowered(), like="passes")
    assert result.like == "passes"
    assert str(result) == str(propagate(lowered().as_text()))


def test_the_interface_is_that_of_jax() -> None:
    """Names of arguments and results, donation and what the module says are kept; HLO's own notes are left out."""
    result = propagate(lowered(), in_shardings={"params['w']": (None, "y")})
    assert str(result.arguments[0]) == '<@mesh, [{}, {"y"}]>'
    items = result.main.attributes["arg_attrs"]
    assert [sorted(item) for item in items] == [["sdy.sharding"], ["jax.buffer_donor", "sdy.sharding"]]
    names = [item["jax.result_info"] for item in result.main.attributes["res_attrs"]]
    assert names == ["result[0]['top'][0]", "result[0]['top'][1]", "result[0]['y']", "result[1]"]
    head = result.text.partition("\n")[0]
    assert "mhlo.num_partitions = 8" in head
    assert "is_dynamic" not in head


def test_memory_kinds_are_kept() -> None:
    """HLO keeps no memory of arguments and results; the attributes of JAX's module come back."""
    host = over("x").with_memory_kind("pinned_host")
    program = jax.jit(jnp.sin, in_shardings=over("x"), out_shardings=host).trace(array(8, 4))
    result = propagate(program.lower(lowering_platforms=("cpu",)))
    assert result.like == "jit"
    assert result.main.attributes["res_attrs"][0]["mhlo.memory_kind"] == "pinned_host"


def test_ops_keep_their_lines_and_name_stacks() -> None:
    """Ops say where they were written, and through which calls and loops they came."""

    @jax.jit
    def inner(x):
        return jnp.tanh(x)

    result = propagate(jax.jit(lambda x: inner(x) * 2).trace(array(8, 4, by=over("x"))))
    (tanh,) = (op for op in result.program.walk() if op.name == "stablehlo.tanh")
    assert tanh.location.rpartition("/")[2].startswith("test_like_jit.py:")
    assert tanh.scope.endswith("jit(inner)/tanh")


def test_what_cannot_be_converted_falls_back(monkeypatch) -> None:
    """A program that XLA does not convert is propagated as it is, with a warning that says why."""

    def fail(*_: Any, **__: Any) -> None:
        raise ConversionError("XLA cannot convert it to HLO: there is no bridge")

    monkeypatch.setattr(reading, "convert_native", fail)
    result = propagate(lowered())
    assert result.like == "passes"
    (warning,) = result.warnings
    assert warning.code == "not-like-jit"
    assert "jax.jit may decide otherwise: XLA cannot convert it to HLO: there is no bridge" in warning.message


def test_programs_of_gspmd_fall_back() -> None:
    """A program that was lowered without the Shardy partitioner is not propagated by Shardy inside of jit."""
    with partitioner(shardy=False):
        program = jax.jit(jnp.sin).trace(array(8, 4, by=over("x"))).lower(lowering_platforms=("cpu",))
    result = propagate(program)
    assert (result.like, [item.code for item in result.warnings]) == ("passes", ["not-like-jit"])
    assert "without the Shardy partitioner" in result.warnings[0].message
    assert propagate(program, like="passes").warnings == ()


def test_text_that_xla_does_not_know_falls_back() -> None:
    """A module of another dialect has no HLO; asked for that, the run says why it is propagated as it is."""
    text = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
      %0 = "toy.op"(%a) : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }"""
    result = propagate(text, {"x": 2}, in_shardings=[("x",)], like="jit")
    assert [item.code for item in result.warnings] == ["not-like-jit"]
    assert result.like == "passes"


def test_programs_of_other_frontends_fall_back() -> None:
    """A program that was built here has no HLO."""
    from shardy_py import Builder, tensor

    builder = Builder()
    with builder.function("main", [tensor(4)]) as (x,):
        builder.return_(x)
    result = propagate(builder.program, {"x": 2}, in_shardings=[("x",)], like="jit")
    assert (result.like, [item.code for item in result.warnings]) == ("passes", ["not-like-jit"])


def test_erf_runs_on_the_shards_that_its_neighbours_have() -> None:
    """Nothing propagates through `erf`, but what makes and what reads it is sharded: nothing is gathered, as in XLA."""
    traced = jax.jit(lambda x: jnp.exp(x) + jax.scipy.special.erf(x)).trace(array(8, 4, by=over("x")))
    result = propagate(traced)
    assert result.like == "jit"
    assert "all_gather" not in str(result.local())


def test_erf_has_no_rule_in_jit() -> None:
    """XLA gives `erf` no rule and replicates it; extended rules, which give others one, do as XLA does here."""
    program = jax.jit(jax.scipy.special.erf).trace(array(8, 4, by=over("x")))
    assert shardings(propagate(program))[1] == ""
    assert shardings(propagate(program, extended_rules=True))[1] == ""
    assert shardings(propagate(program, extended_rules=True, like="passes"))[1] == ' [{"x"}, {}]>'


def test_a_stage_for_the_conversion() -> None:
    """The conversion is a stage of its own; programs that are not converted have none."""
    stages: list[str] = []
    propagate(lowered(), on_stage=stages.append)
    assert stages[:3] == ["import", "convert", "prepare"]
    stages.clear()
    propagate(lowered(), on_stage=stages.append, like="passes")
    assert "convert" not in stages


def test_all_that_runs_again_runs_like_jit() -> None:
    """Sessions, explanations, local programs, advice and sweeps see the converted program."""
    result = propagate(lowered(), trace=True, local=True)
    assert "through mhlo.topk" in str(result.explain("result0"))
    assert result.local().collectives is not None
    assert "bytes sent" in str(result.advise(trials=1))
    session = Session.open(lowered())
    assert any(op.name == "mhlo.topk" for op in session.program.walk())


def test_a_program_for_other_processes_is_converted_once() -> None:
    """What a sweep sends to its processes is the converted module, and is propagated like jit there."""
    import zlib

    from shardy_py.api.options import ProgramInput
    from shardy_py.api.program_source import ProgramSource
    from shardy_py.frontends.select import bundled_frontend

    source = ProgramSource.of(ProgramInput(lowered()))
    assert source.frontend == "jit"
    session = source.open()
    assert any(op.name == "mhlo.topk" for op in session.program.walk())
    assert session.registry.options.like_jit
    frontend = bundled_frontend("jit")
    module = frontend.from_bytes(zlib.decompress(source.module))
    assert frontend.accepts(module)
    assert "mhlo.topk" in frontend.print_text(module)
    assert propagate(module).like == "jit"
    assert shardings(propagate(module)) == LIKE_JIT
    assert ProgramSource.of(ProgramInput(lowered(), like="passes")).frontend == "mlir"


def test_the_cost_of_text_of_jax_says_what_it_is_of() -> None:
    """Priced as it is by request, the note tells how to price the program of jit; by default it is the other way."""
    text = lowered().as_text()
    session = Session.open(text, like="passes")
    assert any("give like='jit'" in note for note in session.evaluate(profile="xla-cpu", partitioner="xla").cost.notes)
    by_default = Session.open(text)
    assert by_default.like == "passes"
    assert any(
        "give like='passes'" in note for note in by_default.evaluate(profile="xla-cpu", partitioner="xla").cost.notes
    )
    like_jit = Session.open(text, like="jit")
    assert like_jit.like == "jit"
    cost = like_jit.evaluate(profile="xla-cpu", partitioner="xla").cost
    assert not any("like='jit'" in note for note in cost.notes)
    assert (
        cost.communication_bytes
        == Session.open(lowered()).evaluate(profile="xla-cpu", partitioner="xla").cost.communication_bytes
    )
