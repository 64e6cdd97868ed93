"""Propagation from end to end, on native modules."""

from __future__ import annotations

import pickle
import types
from pathlib import Path
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py.errors import OptionError, UnsupportedError
from shardy_py.propagation import FLAT

pytest.importorskip("jaxlib", reason="native modules need jaxlib")

TEXT = """\
func.func @main(%arg0: tensor<8x16xf32>, %arg1: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1:2 = "stablehlo.optimization_barrier"(%0, %arg1)
      : (tensor<8x4xf32>, tensor<16x4xf32>) -> (tensor<8x4xf32>, tensor<16x4xf32>)
  return %1#0 : tensor<8x4xf32>
}
"""
MESH = {"a": 2, "b": 2}
IN_SHARDINGS = [("a", None), (None, "b")]
EXPECTED = '<@mesh, [{"a"}, {"b"}]>'


def propagated(module: Any = TEXT, **options: Any) -> sdy.Result:
    """Propagate the module with its mesh and shardings."""
    return sdy.propagate(module, MESH, in_shardings=IN_SHARDINGS, **options)


def test_every_value_can_be_asked_for() -> None:
    """The sharding of a value is found by number, by printed name, by the program's and by the native value."""
    result = propagated()
    native = result.module.body.operations[1].regions[0].blocks[0].operations[0].results[0]
    for key in ("%0", "0", "%1#0", native, result.value("%0"), "result0"):
        assert str(result.sharding(key)) == EXPECTED
    for key in (0, "arg0", "%arg0"):
        assert str(result.sharding(key)) == '<@mesh, [{"a"}, {}]>'
    assert [str(item) for item in result.results] == [EXPECTED]
    assert [str(item) for item in result.arguments] == ['<@mesh, [{"a"}, {}]>', '<@mesh, [{}, {"b"}]>']


@pytest.mark.parametrize("key", [2, -1, "%7", "1#2", "", None, 1.5, []])
def test_unknown_values(key: Any) -> None:
    """Asking for a value that does not exist is an error."""
    with pytest.raises(OptionError):
        propagated().sharding(key)


def test_native_modules_are_changed_in_place() -> None:
    """A native module comes back as the same object, annotated."""
    from shardy_py.frontends.mlir import parse_module

    module = parse_module(TEXT)
    result = propagated(module)
    assert result.module is module
    assert EXPECTED in str(module)
    assert str(result) == result.text == str(module)


def test_text_bytes_and_paths(tmp_path: Path) -> None:
    """Text, its bytes, bytecode and a file of it give the same module."""
    import io

    from shardy_py.frontends.mlir import parse_module

    path, bytecode = tmp_path / "in.mlir", io.BytesIO()
    path.write_text(TEXT)
    parse_module(TEXT).operation.write_bytecode(bytecode)
    expected = propagated().text
    for source in (TEXT.encode(), path, bytecode.getvalue()):
        assert propagated(source).text == expected


def test_the_result_verifies() -> None:
    """MLIR's own verifier accepts what comes out, with the mesh that was added."""
    from shardy_py.frontends.mlir import parse_module

    text = propagated().text
    assert 'sdy.mesh @mesh = <["a"=2, "b"=2]>' in text
    assert str(parse_module(text)) == text


def test_repeating_changes_nothing() -> None:
    """A module that was propagated stays as it is."""
    text = propagated().text
    assert sdy.propagate(text).text == text


def test_lowered_functions_of_jax() -> None:
    """What JAX traces and lowers is accepted, with its NamedShardings for the arguments, and not changed."""
    jax = pytest.importorskip("jax")
    mesh = jax.sharding.AbstractMesh((2, 2), ("a", "b"))
    spec = jax.sharding.PartitionSpec
    shapes = [jax.ShapeDtypeStruct(shape, "float32") for shape in ((8, 16), (16, 4))]
    traced = jax.jit(lambda x, w: x @ w).trace(*shapes)
    before = traced.lower().as_text()
    shardings = [jax.sharding.NamedSharding(mesh, spec("a")), spec(None, "b")]
    for module in (traced, traced.lower()):
        result = sdy.propagate(module, in_shardings=shardings)
        assert str(result.sharding("%0")) == EXPECTED
    assert traced.lower().as_text() == before


@pytest.mark.parametrize("strategy", ["basic", "aggressive", "op-priority", "user-priority"])
def test_strategies(strategy: Any) -> None:
    """Each strategy propagates what is free of conflicts."""
    assert str(propagated(strategy=strategy).sharding("%0")) == EXPECTED


def test_schedules_replace_levels() -> None:
    """A schedule may be given where there are levels, and only there."""
    assert str(propagated(schedule=FLAT).sharding("%0")) == EXPECTED
    with pytest.raises(OptionError, match="no levels"):
        propagated(schedule=FLAT, strategy="basic")
    with pytest.raises(OptionError, match="not a schedule"):
        propagated(schedule=3)


def test_unknown_strategies() -> None:
    """An unknown strategy is refused before the module is read."""
    with pytest.raises(OptionError, match="unknown strategy 'best'"):
        propagated("this is no module", strategy="best")


def test_strictness() -> None:
    """A strict run of a complete program passes; a registry without rules makes it fail."""
    assert propagated(strict=True).coverage.is_complete
    with pytest.raises(UnsupportedError, match=r"stablehlo\.dot_general"):
        propagated(strict=True, registry=sdy.Registry.of([]))


def test_plugins_add_rules() -> None:
    """A plugin given with the call adds its rules to the installed ones."""

    class Plugin:
        @sdy.hookimpl
        def shardy_register_dialects(self) -> list[sdy.Dialect]:
            toy = sdy.Dialect("toy")

            @toy.op("toy.window")
            def window(op: Any) -> sdy.OpShardingRule:
                return sdy.OpShardingRuleBuilder.for_op(op).add_factor([0], [0], 8).build()

            return [toy]

    # The op's result is %1 of what comes out: the barrier that nothing uses is gone.
    text = TEXT.replace("return %1#0", '%2 = "toy.window"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>\n  return %2')
    assert propagated(text).sharding("%1") is None
    assert str(propagated(text, plugins=[Plugin()]).sharding("%1")) == '<@mesh, [{"a"}, {}]>'
    with pytest.raises(OptionError, match="exclude each other"):
        propagated(text, plugins=[Plugin()], registry=sdy.Registry.of([]))


def test_stages_are_announced() -> None:
    """A callback hears of each stage once, in order."""
    stages: list[str] = []
    propagated(on_stage=stages.append)
    assert stages == ["import", "prepare", "compile", "solve", "finish", "write"]


def test_progress_has_a_total() -> None:
    """A callback hears of every step: one more each time, of a number that is known at once."""
    progress: list[tuple[int, int, str]] = []
    passes: list[str] = []
    propagated(on_progress=lambda *step: progress.append(step), on_pass=lambda name, _: passes.append(name))
    assert {total for _, total, _ in progress} == {len(passes) + 2}
    counts = [done for done, _, _ in progress]
    assert counts == sorted(counts)
    assert set(counts) == set(range(len(passes) + 3))
    stages = dict.fromkeys(stage for _, _, stage in progress)
    assert list(stages) == ["import", "prepare", "compile", "solve", "finish", "write"]


def test_loops_show_their_shardings() -> None:
    """Values inside a loop are asked for like any other: the edge's owner speaks for them."""
    text = """\
func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<i32>) -> tensor<8xf32> {
  %0:2 = stablehlo.while(%a = %arg0, %n = %arg1) : tensor<8xf32>, tensor<i32>
    cond {
      %1 = stablehlo.compare LT, %n, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %a, %a : tensor<8xf32>
      stablehlo.return %1, %n : tensor<8xf32>, tensor<i32>
    }
  return %0#0 : tensor<8xf32>
}
"""
    result = sdy.propagate(text, MESH, in_shardings={0: ("a",)})
    assert {str(result.sharding(name)) for name in ("%0#0", "%iterArg")} == {'<@mesh, [{"a"}]>'}
    assert "data_flow_edge" not in result.text


CALLS = """\
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},
    %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f(%arg1) : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def test_shardings_flow_through_calls() -> None:
    """Each call has a function with its own shardings, or by option all calls share those of the first."""
    result = sdy.propagate(CALLS)
    assert [str(item) for item in result.results] == ['<@mesh, [{"a"}]>', '<@mesh, [{"b"}]>']
    assert len(result.program.functions) == 3
    shared = sdy.propagate(CALLS, dedup_functions_fully=True)
    assert len(shared.program.functions) == 2
    assert shared.summary.reshards > result.summary.reshards == 0


@pytest.mark.parametrize("options", [{}, {"dedup_functions_fully": True}, {"explicit_collectives": True}])
def test_the_result_is_that_of_the_pipeline(options: dict[str, bool]) -> None:
    """Without options of its own, `propagate` gives what the pipeline of that name gives."""
    from shardy_py.oracle.conformance import run

    names = {"explicit_collectives": "enable-insert-explicit-collectives"}
    text = ",".join(f"{names.get(name, name.replace('_', '-'))}=true" for name in options)
    assert sdy.propagate(CALLS, **options).text == run(CALLS, f"sdy-propagation-pipeline{{{text}}}")


def test_collectives_are_explicit_by_option() -> None:
    """A conflict between two operands ends in a collective."""
    text = """\
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},
    %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    assert "sdy." not in sdy.propagate(text).text.replace("sdy.mesh", "").replace("sdy.sharding", "")
    result = sdy.propagate(text, explicit_collectives=True)
    assert "sdy.collective_permute" in result.text
    assert result.summary.reshards == 2


def test_snapshots_and_callback(tmp_path: Path) -> None:
    """There is a snapshot and a call after every pass; the last snapshot is the result; they change nothing."""
    seen: list[tuple[str, int]] = []
    folder = tmp_path / "new" / "folder"
    result = sdy.propagate(CALLS, dump_directory=folder, on_pass=lambda name, p: seen.append((name, len(p.functions))))
    files = sorted(folder.iterdir())
    assert [path.name for path in files] == [f"{number:02}.{name}.mlir" for number, (name, _) in enumerate(seen)]
    assert files[-1].read_text() == result.text == sdy.propagate(CALLS).text
    assert ("sdy-propagate", 1) in seen
    assert seen[0] == ("symbol-dce", 2)


def test_snapshots_need_a_folder(tmp_path: Path) -> None:
    """A folder that cannot be made is an error with its name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match=r"file: error: cannot write snapshots: File exists"):
        sdy.propagate(CALLS, dump_directory=tmp_path / "file")


def test_warnings_come_with_the_result() -> None:
    """What is no error but worth knowing is in the result: here two members of a group with different shardings."""
    text = """\
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>},
    %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> tensor<8xf32> {
  sdy.sharding_group %arg0 group_id=1 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id=1 : tensor<8xf32>
  return %arg0 : tensor<8xf32>
}
"""
    (warning,) = sdy.propagate(text).warnings
    assert "group" in warning.message
    assert str(warning.show("warning")).count("warning: ") == 1


def test_results_run_on_devices() -> None:
    """A result compiles for as many devices as its mesh has; here one."""
    pytest.importorskip("jax")
    import numpy

    text = """\
sdy.mesh @mesh = <["a"=1]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    (doubled,) = sdy.propagate(text).to_jax()(numpy.arange(8, dtype=numpy.float32))
    assert doubled.tolist() == list(range(0, 16, 2))


def test_modules_that_do_not_run() -> None:
    """Too few devices are refused before XLA sees the module."""
    pytest.importorskip("jax")
    with pytest.raises(OptionError, match="has 4 devices"):
        sdy.propagate(CALLS).to_jax(devices=[])


def test_complex_constants_are_split_with_their_shardings():
    """MLIR's bindings have no class for complex constants; their copies keep what the shardings refer to."""
    text = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
    -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) {
  %c = stablehlo.constant dense<(1.0,2.0)> : tensor<4xcomplex<f32>>
  %0 = stablehlo.add %x, %c : tensor<4xcomplex<f32>>
  %1 = stablehlo.multiply %x, %c : tensor<4xcomplex<f32>>
  return %0, %1 : tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>
}
"""
    result = sdy.propagate(text)
    constants = [line for line in result.text.splitlines() if "sdy.constant" in line]
    assert constants
    assert all('[{"a"}]' in line for line in constants)


def test_a_generator_may_have_a_rule() -> None:
    """The results of an op without operands share factors; such a rule is never written on the op, Shardy has none."""
    toy = sdy.Dialect("toy")
    toy.op("toy.grid", rule="-> i j, i", traits=[sdy.Pure])
    text = """sdy.mesh @mesh = <["a"=2]>
    func.func @main() -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, tensor<8xf32>) {
      %0:2 = "toy.grid"() : () -> (tensor<8x4xf32>, tensor<8xf32>)
      return %0#0, %0#1 : tensor<8x4xf32>, tensor<8xf32>
    }"""
    plugin = types.SimpleNamespace(__name__="toy", shardy_register_dialects=sdy.hookimpl(lambda: [toy]))
    registry = sdy.Registry.from_entry_points(plugins=[plugin])
    result = sdy.propagate(text, registry=registry, keep_sharding_rules=True, explicit_collectives=True)
    assert str(result.sharding("%0#1")) == '<@mesh, [{"a"}]>'
    assert "sharding_rule" not in result.text
    assert sdy.propagate(result.text, registry=registry, explicit_collectives=True).text == result.text


def test_a_result_is_not_pickled() -> None:
    """Sending a result to another process is an error that says what to send."""
    result = sdy.propagate(TEXT)
    with pytest.raises(OptionError, match=r"cannot be pickled[\s\S]*send its text"):
        pickle.dumps(result)
