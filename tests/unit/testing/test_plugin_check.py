"""The numeric kit over a whole plugin finds what is wrong, and says what it could not try."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("click", reason="the command line is made with click")

from click import testing

import shardy_py as sdy
from shardy_py.sharding.einsum import rule
from shardy_py.testing.plugin_check import check_plugin
from shardy_py.testing.samples import shapes_of_text

PLUGIN = """
import numpy as np
import shardy_py as sdy

toy = sdy.Dialect("toy")
toy.op("toy.matmul", rule="i k, k j -> i j", reduction="k")
toy.op("toy.center", rule="i j -> i j"{mark})


@sdy.hookimpl
def shardy_register_dialects():
    return [toy]


FUNCTIONS = {{"toy.matmul": np.matmul, "toy.center": lambda x: x - x.mean(0)}}
"""


def plugin(define: Any) -> Any:
    """Return a plugin with a dialect that a function fills."""
    toy = sdy.Dialect("toy")
    define(toy)
    hook = sdy.hookimpl(lambda: [toy])
    return SimpleNamespace(__name__="toy_plugin", shardy_register_dialects=hook)


def program(name: str, *shapes: tuple[int, ...], result: tuple[int, ...]) -> Any:
    """Return a program of one op."""
    builder = sdy.Builder()
    with builder.function("main", [sdy.tensor(*shape) for shape in shapes]) as values:
        builder.return_(builder.op(name, values, [sdy.tensor(*result)]))
    return builder.build()


def test_what_holds_is_ok() -> None:
    """Products, elementwise ops and batches are right, under each sharding of each dimension."""

    def define(toy: sdy.Dialect) -> None:
        toy.op("toy.matmul", rule="... i k, ... k j -> ... i j", reduction="k")
        toy.op("toy.add", traits=[sdy.Elementwise])

    report = check_plugin(plugin(define), {"toy.matmul": np.matmul, "toy.add": np.add})
    assert report.ok
    assert [(item.name, item.runs) for item in report.ops] == [("toy.matmul", 6), ("toy.add", 4)]
    assert (report.without_function, report.without_sample) == ((), ())


def test_a_wrong_rule_and_a_wrong_local_form_are_found() -> None:
    """The report names the factor and the device."""

    def define(toy: sdy.Dialect) -> None:
        toy.op("toy.center", rule="i j -> i j")
        toy.op("toy.sum", rule="i j -> i", reduction="j", combiner=sdy.Combiner.MAX)

    functions = {"toy.center": lambda x: x - x.mean(0), "toy.sum": lambda x: x.sum(1)}
    report = check_plugin(plugin(define), functions)
    assert not report.ok
    center, total = report.ops
    assert "wrong: factor i=4, pass-through" in center.problems[0]
    assert "it needs replication" in center.problems[0]
    assert "on device 0" in center.problems[1]
    assert "wrong: factor j=6" in total.problems[0]
    assert "toy.center (tensor<4x6xf32>): WRONG, 2 shardings" in str(report)


def test_what_is_not_tried_is_named() -> None:
    """An op without a function, and one whose rule is a function and that no program has."""

    def define(toy: sdy.Dialect) -> None:
        toy.op("toy.relu", rule="i -> i")
        toy.op("toy.reshape", rule=sdy.rules.reshape)

    functions = {"toy.reshape": lambda x: x.reshape(-1)}
    report = check_plugin(plugin(define), functions)
    assert (report.without_function, report.without_sample) == (("toy.relu",), ("toy.reshape",))
    tried = check_plugin(plugin(define), functions, [program("toy.reshape", (4, 6), result=(24,))])
    assert [(item.name, item.problems) for item in tried.ops] == [("toy.reshape", ())]
    assert [(item.name, item.runs, item.problems) for item in tried.programs] == [("program", 4, ())]


def test_a_program_with_unknown_ops_is_not_run() -> None:
    """The report says which functions are missing."""
    report = check_plugin(
        plugin(lambda toy: toy.op("toy.relu", rule="i -> i")), {}, [program("toy.relu", (4,), result=(4,))]
    )
    assert report.programs[0].problems == ("FUNCTIONS has no function for toy.relu",)
    assert not report.ok
    assert "program: NOT RUN\n  FUNCTIONS has no function for toy.relu" in str(report)


def test_definitions_of_one_name_are_tried_with_their_own_ops() -> None:
    """What a definition is about by values of attributes is tried with these; an op of a program once."""

    def define(toy: sdy.Dialect) -> None:
        toy.op("toy.call")
        toy.op("toy.call", when={"target": "norm"}, rule="i j -> i j", need_replication="j")
        toy.op("toy.call", when={"target": "flip"}, rule="i j -> i j", permutation="i")

    builder = sdy.Builder()
    with builder.function("main", [sdy.tensor(4, 6)]) as (x,):
        builder.return_(builder.op("toy.call", [x], [sdy.tensor(4, 6)], {"target": "norm"}))
    functions = {"toy.call": lambda x: x / x.sum(1, keepdims=True)}
    report = check_plugin(plugin(define), functions, [builder.build()])
    norm, flip = report.ops
    assert not norm.problems
    assert "now i is permutation" in flip.problems[0]
    assert report.without_sample == ()


def test_regions_constants_and_integers() -> None:
    """An op with regions is tried in programs only, constants need no function, and ops on bits get integers."""

    def define(toy: sdy.Dialect) -> None:
        toy.op("toy.invert", rule="i j -> i j")
        toy.op("toy.table", traits=[sdy.ConstantLike])
        toy.op("toy.repeat", data_flow=sdy.LoopDataFlow())
        toy.op("toy.yield", traits=[sdy.IsTerminator])

    builder = sdy.Builder()
    with builder.function("main", [sdy.tensor(4, 6, dtype="i32")]) as (x,):
        with (
            builder.region_op("toy.repeat", [x], [x.type]) as loop,
            builder.region(loop, [x.type]) as (carried,),
        ):
            builder.op("toy.yield", [builder.op("toy.invert", [carried], [x.type])])
        builder.return_(loop.result)
    functions: dict[str, Any] = {
        "toy.invert": np.invert,
        "toy.repeat": lambda x, regions: regions[0](regions[0](regions[0](x))),
    }
    alone = check_plugin(plugin(define), functions)
    assert [(item.name, item.types) for item in alone.ops] == [("toy.invert", "(tensor<4x6xi32>)")]
    assert (alone.without_function, alone.without_sample) == ((), ("toy.repeat",))
    report = check_plugin(plugin(define), functions, [builder.build()])
    assert [item.name for item in report.ops] == ["toy.invert"]
    assert [(item.runs, item.problems) for item in report.programs] == [(4, ())]
    assert report.without_sample == ()


def test_bundled_plugins_say_what_they_check() -> None:
    """TOSA has functions; a bundled plugin without them is not for its user to change."""
    from shardy_py.cli.app import shardy

    tosa = testing.CliRunner().invoke(shardy, ["check", "tosa"])
    assert tosa.exit_code == 0, tosa.output
    assert "tosa.sigmoid (tensor<4x6xf32>): ok, 2 shardings" in tosa.stdout
    onnx = testing.CliRunner().invoke(shardy, ["check", "onnx"])
    assert onnx.exit_code == 2
    assert "the bundled plugin 'onnx' has no functions of numpy" in onnx.stderr
    assert "shardy run FILE --compare" in onnx.stderr


def test_sizes_of_samples_differ() -> None:
    """Factors of one size could be mistaken for each other."""
    assert list(shapes_of_text(rule("... (i j), j -> ... i j"))) == [(8, 24), (6,)]


@pytest.mark.parametrize(("mark", "code"), [("", 1), (', need_replication="i"', 0)])
def test_the_command_tells_right_from_wrong(tmp_path: Path, mark: str, code: int) -> None:
    """The exit code is that of a check."""
    from shardy_py.cli.app import shardy

    path = tmp_path / f"toy_{code}.py"
    path.write_text(PLUGIN.format(mark=mark))
    done = testing.CliRunner().invoke(shardy, ["check", str(path), "--json"])
    assert done.exit_code == code, done.output
    assert json.loads(done.stdout)["ok"] is (code == 0)
    assert "toy.center" in done.stdout


def test_a_plugin_without_functions_is_refused(tmp_path: Path) -> None:
    """The error shows what to write."""
    from shardy_py.cli.app import shardy

    path = tmp_path / "toy_nothing.py"
    path.write_text("import shardy_py\n")
    done = testing.CliRunner().invoke(shardy, ["check", str(path)])
    assert done.exit_code == 2
    assert "has no dictionary FUNCTIONS" in done.stderr


def test_a_function_gets_the_op_of_a_device() -> None:
    """The types of its results are those of the shards, whichever way the op is tried."""

    def define(toy: sdy.Dialect) -> None:
        toy.op("toy.split", rule=sdy.rules.reshape)

    functions = {"toy.split": lambda x, op: x.reshape(op.result.shape)}
    report = check_plugin(plugin(define), functions, [program("toy.split", (8, 6), result=(4, 2, 6))])
    assert report.ok, str(report)


def test_a_function_that_fails_is_a_problem_of_its_op() -> None:
    """The report says what it raised, and which parameters a function may have."""

    def define(toy: sdy.Dialect) -> None:
        toy.op("toy.order", rule="i j -> i j")

    report = check_plugin(plugin(define), {"toy.order": lambda x, order: x})
    (check,) = report.ops
    assert not report.ok
    assert check.problems[0].startswith("its function raised TypeError: ")
    assert "by a parameter named op" in check.problems[0]


def test_made_up_operands_need_not_fit() -> None:
    """A function that takes numbers of rows raises for other operands: its op is listed as not checked."""
    definition = plugin(lambda toy: toy.op("toy.rows", rule="v d, i -> i d", reduction="v"))
    report = check_plugin(definition, {"toy.rows": lambda table, rows: table[rows]})
    assert report.ok
    assert "not checked, give a program that has them: toy.rows (its function raised IndexError" in str(report)


def test_a_dynamic_program_is_checked_with_numbers() -> None:
    """Its sizes, those of what a loop carries too, follow from one number for all; terminators need no function."""

    def define(toy: sdy.Dialect) -> None:
        toy.op("toy.scale", traits=[sdy.Elementwise])
        toy.op("toy.loop", data_flow=sdy.LoopDataFlow())
        toy.op("toy.end", traits=[sdy.IsTerminator])

    builder, type_ = sdy.Builder(), sdy.tensor(None, 4)
    with builder.function("main", [type_]) as (x,):
        with builder.region_op("toy.loop", [x], [type_]) as loop, builder.region(loop, [type_]) as (carried,):
            builder.emit("toy.end", [builder.op("toy.scale", [carried], [type_])])
        builder.return_(*loop.results)
    functions = {"toy.scale": lambda x: 2 * x, "toy.loop": lambda x, regions: regions[0](regions[0](x))}
    report = check_plugin(plugin(define), functions, [builder.build()])
    assert report.ok, str(report)
    assert report.programs[0].runs
    assert report.without_function == ()


def test_a_function_that_fails_on_shards_is_a_problem() -> None:
    """The check of its op and of programs goes on; the report says what it raised under which sharding."""

    def first_four(x: Any) -> Any:
        return x[np.arange(4)]

    definition = plugin(lambda toy: toy.op("toy.first", rule="i -> i"))
    report = check_plugin(definition, {"toy.first": first_four}, [program("toy.first", (4,), result=(4,))])
    (check,), (run,) = report.ops, report.programs
    assert check.problems[1].startswith("sharded by operand 0 ['d']: IndexError: ")
    assert any("IndexError" in problem and "in the function of toy.first" in problem for problem in run.problems)


def test_an_op_with_an_operand_that_is_no_tensor_runs_in_programs_only() -> None:
    """No operand such as TOSA's shapes can be made up, so that the op is not tried alone, and nothing is wrong."""
    pytest.importorskip("jaxlib", reason="MLIR reads the module")
    import shardy_dialects.tosa

    text = """func.func @main(%x: tensor<4x6xf32>) -> tensor<4x2x3xf32> {
  %s = tosa.const_shape {values = dense<[4, 2, 3]> : tensor<3xindex>} : () -> !tosa.shape<3>
  %0 = tosa.reshape %x, %s : (tensor<4x6xf32>, !tosa.shape<3>) -> tensor<4x2x3xf32>
  return %0 : tensor<4x2x3xf32>
}"""
    report = check_plugin(shardy_dialects.tosa, shardy_dialects.tosa.FUNCTIONS, {"reshape": text})
    assert "tosa.reshape" not in {item.name for item in report.ops}
    (run,) = report.programs
    assert (run.problems, run.runs > 0) == ((), True)


def test_an_installed_plugin_is_checked_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name is that of an installed plugin where no file has it; the closest one is proposed for a wrong name."""
    import shardy_dialects.tosa
    from shardy_py.cli.app import shardy

    runner = testing.CliRunner()
    monkeypatch.setattr(shardy_dialects.tosa, "FUNCTIONS", {"tosa.log": np.log}, raising=False)
    done = runner.invoke(shardy, ["check", "tosa"])
    assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "tosa.log (tensor<4x6xf32>): ok, 2 shardings")
    wrong = runner.invoke(shardy, ["check", "toso"])
    assert wrong.exit_code == 2
    assert "no plugin 'toso'" in wrong.stderr
    assert "did you mean tosa?" in wrong.stderr


def test_functions_run_a_propagated_program() -> None:
    """Devices that compute by the functions of a plugin give what it gives on whole tensors, also of uneven parts."""
    from shardy_py.testing.sharded.functions_run import run_functions

    definition = plugin(lambda toy: toy.op("toy.matmul", rule="i k, k j -> i j", reduction="k"))
    builder = sdy.Builder(mesh={"a": 2, "b": 3})
    with builder.function("main", [sdy.tensor(6, 8), sdy.tensor(8, 5)]) as (x, w):
        builder.shard(x, '[{"b"}, {"a"}]')
        builder.return_(builder.op("toy.matmul", [x, w], [sdy.tensor(6, 5)]))
    result = sdy.propagate(builder.build(), plugins=[definition])
    arrays = [np.arange(48.0, dtype="f4").reshape(6, 8), np.arange(40.0, dtype="f4").reshape(8, 5)]
    report = run_functions(result, {"toy.matmul": np.matmul}, inputs=arrays, seed=0, compare=True, tolerance=None)
    assert (report.devices, report.platform, report.is_within) == (6, "numpy", True)
    np.testing.assert_allclose(report.arrays[0], arrays[0] @ arrays[1])
    wrong = run_functions(
        result, {"toy.matmul": lambda x, w: x @ w + 100}, inputs=arrays, seed=0, compare=True, tolerance=None
    )
    assert not wrong.is_within
