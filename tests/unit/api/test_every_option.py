"""Every option of a propagation changes what comes out, in `propagate` and in sessions: none is ignored."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from attrs import fields

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

import shardy_py as sdy
from shardy_py.api.options import Options, ProgramInput, ProgramOptions, SessionArguments
from shardy_py.api.program_source import SessionOptions
from shardy_py.cli.app import shardy
from shardy_py.transforms.pipelines import PropagationPipeline
from shardy_py.transforms.propagate import UserPriorityPropagationPass

MESH = 'sdy.mesh @mesh = <["a"=2, "b"=2]>'
T = "tensor<8x8xf32>"

ON_ONE_DEVICE = """
sdy.mesh @mesh = <["x"=2]>
sdy.mesh @device_1 = <[], device_ids=[1]>
func.func @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.custom_call @f(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@device_1, []>]>}
      : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


def _argument(name: str, dims: str, type_: str = T) -> str:
    return f"{name}: {type_} {{sdy.sharding = #sdy.sharding<@mesh, {dims}>}}"


def _module(arguments: str, results: str, *body: str, functions: str = "") -> str:
    lines = "\n".join(f"  {line}" for line in body)
    return f"{MESH}\nfunc.func @main({arguments}) -> ({results}) {{\n{lines}\n}}\n{functions}"


PLAIN = _module(_argument("%x", '[{"a"}, {}]'), T, f"%0 = stablehlo.negate %x : {T}", f"return %0 : {T}")
NO_MESH = f"func.func @main(%x: {T}) -> {T} {{\n  %0 = stablehlo.negate %x : {T}\n  return %0 : {T}\n}}\n"
PRIORITIES = _module(
    _argument("%x", '[{"a"}p1, {}]') + ", " + _argument("%y", '[{"b"}p0, {}]'),
    T,
    f"%0 = stablehlo.add %x, %y : {T}",
    f"return %0 : {T}",
)
UNEVEN = _module(
    _argument("%x", '[{"a"}]', "tensor<5xf32>"),
    "tensor<5xf32>",
    "%0 = stablehlo.negate %x : tensor<5xf32>",
    "return %0 : tensor<5xf32>",
)
MERGED = """sdy.mesh @mesh = <["a"=8]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<2x4xf32> {
  %0 = stablehlo.reshape %x : (tensor<8xf32>) -> tensor<2x4xf32>
  %1 = stablehlo.negate %0 : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
"""
CALLS = _module(
    _argument("%x", '[{"a"}, {}]') + ", " + _argument("%y", '[{}, {"b"}]'),
    f"{T}, {T}",
    f"%0 = call @f(%x) : ({T}) -> {T}",
    f"%1 = call @f(%y) : ({T}) -> {T}",
    f"return %0, %1 : {T}, {T}",
    functions=f"func.func private @f(%x: {T}) -> {T} {{\n  %0 = stablehlo.negate %x : {T}\n  return %0 : {T}\n}}\n",
)
QUANTIZED = _module(
    _argument("%x", '[{}, {"a"}]', "tensor<6x2xi32>") + ", %i: tensor<5xi32>",
    "tensor<5x2xi32>",
    '%0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 0 : i64, batch_dims = 0 : i64}>'
    " : (tensor<6x2xi32>, tensor<5xi32>) -> tensor<5x2xi32>",
    "%1 = stablehlo.negate %0 : tensor<5x2xi32>",
    "return %1 : tensor<5x2xi32>",
)
SQUARE = _module(_argument("%x", '[{"a"}, {}]'), T, f"%0 = chlo.square %x : {T} -> {T}", f"return %0 : {T}")
UNKNOWN = _module(_argument("%x", '[{"a"}, {}]'), T, f'%0 = "toy.double"(%x) : ({T}) -> {T}', f"return %0 : {T}")


class _Toy:
    @sdy.hookimpl
    def shardy_register_dialects(self) -> list[sdy.Dialect]:
        toy = sdy.Dialect("toy")
        toy.op("toy.double", traits=[sdy.Elementwise])
        return [toy]


Case = tuple[str, Any]
PROGRAM_OPTIONS: dict[str, Case] = {
    "strategy": (PRIORITIES, "op-priority"),
    "conservative": (MERGED, True),
    "extended_rules": (QUANTIZED, True),
    "dedup_functions_fully": (CALLS, True),
    "inline_calls": (CALLS, True),
    "keep_uneven_shardings": (UNEVEN, True),
    "plugins": (UNKNOWN, [_Toy()]),
    "blocked": (PLAIN, ["stablehlo"]),
    "strict_plugins": (PLAIN, True),
}
"""The options of all that propagates: a program, and a value with which it ends otherwise."""
INPUTS: dict[str, Case] = {
    "mesh": (NO_MESH, {"a": 2, "c": 3}),
    "in_shardings": (PLAIN, {0: ("b", None)}),
    "out_shardings": (PLAIN, {0: (None, "b")}),
    "like": (SQUARE, "jit"),
}
REGISTRY = sdy.Registry.of([])


@pytest.fixture
def broken_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution whose plugin cannot be imported is installed."""
    metadata = tmp_path / "faulty_plugin-1.0.dist-info"
    metadata.mkdir()
    (tmp_path / "faulty_plugin.py").write_text("import nothing_of_that_name")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty_plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[shardy_py.dialects]\nfaulty_plugin = faulty_plugin\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])


def _propagated(text: str, **options: Any) -> str:
    return _outcome(lambda: sdy.propagate(text, **options).text)


def _solved(text: str, **options: Any) -> str:
    """Return all shardings of a finished program, and how it looks before propagation."""

    def solve() -> str:
        session = sdy.Session.open(text, **options)
        program = session.finish(session.solve())
        lines = [f"{value.type} {program.sharding(value)}" for op in program.walk() for value in op.results]
        for function in program.functions.values():
            values = (*function.regions[0].blocks[0].arguments, *function.function_results)
            lines += [f"{value.type} {program.sharding(value)}" for value in values]
        return "\n".join([*lines, *(op.name for op in session.program.walk()), *map(str, session.warnings)])

    return _outcome(solve)


def _outcome(run: Callable[[], str]) -> str:
    try:
        return run()
    except sdy.ShardyError as error:
        return str(error)


@pytest.mark.parametrize("run", [_propagated, _solved], ids=["propagate", "Session"])
@pytest.mark.parametrize("name", [*PROGRAM_OPTIONS, *INPUTS])
def test_an_option_changes_the_outcome(name: str, run: Callable[..., str], request: pytest.FixtureRequest) -> None:
    """Of a program that is made for it, the outcome is another one."""
    if name == "strict_plugins":
        request.getfixturevalue("broken_plugin")
    text, value = (PROGRAM_OPTIONS | INPUTS)[name]
    assert run(text, **{name: value}) != run(text)


def test_no_option_is_left_out() -> None:
    """A new option needs a program here; arguments of jitted functions, and sizes, have tests of their own."""
    assert set(PROGRAM_OPTIONS) == {item.name for item in fields(ProgramOptions)}
    assert set(INPUTS) == {item.name for item in fields(ProgramInput)} - {"module", "sizes", "args", "kwargs"}


def test_every_flag_is_in_every_command_that_propagates() -> None:
    """A command line says what the keywords say."""
    flags = {item.name for item in fields(ProgramOptions)}
    for name in ("propagate", "local", "run", "cost", "advise", "explain", "explore", "compare", "search", "diff"):
        command = shardy.get_command(click.Context(shardy), name)
        assert command is not None
        assert flags <= {item.name for item in command.params}, name


def test_options_of_a_single_run_change_it(tmp_path: Path) -> None:
    """Those that sessions do not have are seen in the result, or called."""
    calls: list[str] = []
    values: dict[str, Any] = {
        "schedule": "flat",
        "op_priorities": ["stablehlo.negate"],
        "keep_sharding_rules": True,
        "strict": True,
        "explicit_collectives": True,
        "local": True,
        "upstream": "head",
        "verify": False,
        "record_copies": True,
        "trace": True,
        "dump_directory": tmp_path / "dumps",
        "on_pass": lambda name, program: calls.append("on_pass"),
        "on_stage": lambda name: calls.append("on_stage"),
        "on_progress": lambda done, total, stage: calls.append("on_progress"),
        "registry": REGISTRY,
    }
    assert set(values) == {item.name for item in fields(Options)} - {item.name for item in fields(ProgramOptions)}
    plain = sdy.propagate(PLAIN)
    for name in ("on_pass", "on_stage", "on_progress"):
        sdy.propagate(PLAIN, **{name: values[name]})
        assert name in calls
    traced = {name: sdy.propagate(PLAIN, trace=True, **{name: values[name]}) for name in ("schedule", "op_priorities")}
    default = sdy.propagate(PLAIN, trace=True)
    for result in traced.values():
        assert str(result.trace.schedule) != str(default.trace.schedule)
    assert "sdy.sharding_rule" in sdy.propagate(PLAIN, keep_sharding_rules=True).text
    with pytest.raises(sdy.ShardyError, match="rule"):
        sdy.propagate(UNKNOWN, strict=True)
    assert sdy.propagate(PLAIN, explicit_collectives=True).has_explicit_collectives
    assert sdy.propagate(PLAIN, local=True).local().device_count == 4
    assert sdy.propagate(ON_ONE_DEVICE, upstream="head").text.count("sdy.reshard") == 3
    assert sdy.propagate(ON_ONE_DEVICE).text.count("sdy.reshard") == 0
    with pytest.raises(sdy.ShardyError, match="not a version of upstream"):
        sdy.propagate(PLAIN, upstream="tail")
    assert plain.copies is None
    assert sdy.propagate(PLAIN, record_copies=True).copies is not None
    assert plain.trace is None
    assert default.trace is not None
    sdy.propagate(PLAIN, dump_directory=values["dump_directory"])
    assert list((tmp_path / "dumps").iterdir())
    assert sdy.propagate(PLAIN, registry=REGISTRY).coverage.covered == 0


def test_options_of_a_session_change_it() -> None:
    """Those that only sessions have."""
    session_only = {item.name for item in fields(SessionArguments)} - {item.name for item in fields(ProgramOptions)}
    assert session_only - {item.name for item in fields(ProgramInput)} == {
        "verify",
        "registry",
        "on_given",
        "keep_names",
    }
    arguments: list[Any] = []
    sdy.Session.open(PLAIN, on_given=lambda program, main: arguments.append(main))
    assert len(arguments) == 1
    assert sdy.Session.open(PLAIN).names is None
    assert sdy.Session.open(PLAIN, keep_names=True).names is not None
    assert _solved(PLAIN, registry=REGISTRY) != _solved(PLAIN)


@pytest.mark.parametrize("call", [sdy.propagate, sdy.Session.open], ids=["propagate", "Session"])
def test_verify_lets_mlir_check_a_module(call: Callable[..., Any]) -> None:
    """A module that is broken in memory is refused as it comes in."""
    from jaxlib.mlir import ir

    from shardy_py.frontends.mlir import parse_module

    module = parse_module(PLAIN)
    with module.context:
        function = next(op for op in module.body.operations if op.operation.name == "func.func")
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))
    with pytest.raises(sdy.ShardyError):
        call(module)


def test_options_of_a_registry_stay() -> None:
    """What a given registry says of rules holds as if the run had said it."""
    registry = sdy.Registry.from_entry_points(options=sdy.RuleOptions(conservative=True))
    assert _propagated(MERGED, registry=registry) == _propagated(MERGED, conservative=True) != _propagated(MERGED)
    assert _solved(MERGED, registry=registry) == _solved(MERGED, conservative=True) != _solved(MERGED)


@pytest.mark.parametrize(
    "options",
    [{"plugins": [_Toy()]}, {"blocked": ["aten"]}, {"strict_plugins": True}],
    ids=["plugins", "blocked", "strict_plugins"],
)
@pytest.mark.parametrize("call", [sdy.propagate, sdy.Session.open], ids=["propagate", "Session"])
def test_a_given_registry_and_options_of_plugins_exclude_each_other(
    options: dict[str, Any], call: Callable[..., Any]
) -> None:
    """The registry has its plugins already; more would be ignored."""
    with pytest.raises(sdy.OptionError, match="exclude each other"):
        call(PLAIN, registry=REGISTRY, **options)


@pytest.mark.parametrize("call", [sdy.propagate, sdy.Session.open], ids=["propagate", "Session"])
def test_calls_that_are_inlined_share_nothing(call: Callable[..., Any]) -> None:
    """Of the two options about calls, one leaves nothing for the other."""
    with pytest.raises(sdy.OptionError, match="exclude each other"):
        call(CALLS, inline_calls=True, dedup_functions_fully=True)


def test_axes_need_a_machine() -> None:
    """The links of no machine are no links."""
    with pytest.raises(sdy.OptionError, match="no machine"):
        sdy.Session.open(PLAIN).evaluate(axes={"a": ("x",)})


def test_a_page_and_advice_are_about_the_order_of_the_run() -> None:
    """Ops that came before all others in the run come first when it is done again."""
    conflict = _module(
        _argument("%x", '[{"a", ?}, {?}]') + ", " + _argument("%y", '[{"b", ?}, {?}]'),
        f"{T}, {T}",
        f"%0 = stablehlo.add %x, %y : {T}",
        f"%1 = stablehlo.multiply %y, %0 : {T}",
        f"return %0, %1 : {T}, {T}",
    )
    first = sdy.propagate(conflict, trace=True, op_priorities=["stablehlo.multiply"])
    plain = sdy.propagate(conflict, trace=True)
    page, other = (result.explore(proposals=0).data for result in (first, plain))
    assert page["runs"] != other["runs"]


@pytest.mark.parametrize(
    "options",
    [{"mesh": {"a": 2}}, {"in_shardings": {0: ("a",)}}, {"options": SessionOptions(conservative=True)}],
    ids=str,
)
def test_an_open_session_takes_no_options_of_its_program(options: dict[str, Any]) -> None:
    """It was opened with others, which would hold."""
    session = sdy.Session.open(PLAIN)
    with pytest.raises(sdy.OptionError, match=r"an open session and \w+ exclude each other"):
        sdy.compare_schedules(session, **options)


def test_an_engine_takes_no_options_of_another() -> None:
    """A pipeline with an engine of its own has that engine's options."""
    engine = UserPriorityPropagationPass()
    with pytest.raises(sdy.OptionError, match="engine and conservative_propagation exclude each other"):
        PropagationPipeline(engine=engine, conservative_propagation=True)
    assert PropagationPipeline(engine=engine).engine is engine
