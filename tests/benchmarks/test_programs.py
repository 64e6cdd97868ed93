"""The programs that benchmarks make."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR modules")

from benchmarks.choose import choose_programs
from benchmarks.measure import count_ops
from benchmarks.programs import PROGRAMS
from benchmarks.programs.distinct import OPS_PER_BLOCK, distinct_program
from benchmarks.targets import SMALL_OPS
from shardy_py.frontends.mlir import parse_module

MADE = {program.name: program for program in PROGRAMS}
SMALL = ("gpt-1-loss", "gpt-2", "gpt-32-scanned", "convolution", "beam-search", "distinct")


def _keys(text: str) -> list[tuple[str, str, str, str]]:
    """Return name, types and attributes of every op inside the module."""
    from jaxlib.mlir import ir

    keys = []

    def visit(op: Any) -> ir.WalkResult:
        types = [str([value.type for value in values]) for values in (op.operands, op.results)]
        attributes = {name: str(op.attributes[name]) for name in op.attributes}
        keys.append((op.name, *types, str(attributes)))
        return ir.WalkResult.ADVANCE

    parse_module(text).operation.walk(visit)
    return keys


@pytest.mark.parametrize("name", SMALL)
def test_a_program_is_the_same_every_time(name: str) -> None:
    """Making a program again gives the same text, or two runs could not be compared."""
    if name != "distinct":
        pytest.importorskip("jax", reason="the program is a JAX function")
    assert MADE[name].make() == MADE[name].make()


def test_small_programs_have_100_to_500_ops() -> None:
    """The losses alone are as small as programs that users try first."""
    gpt = pytest.importorskip("benchmarks.programs.gpt", reason="the program is a JAX function")
    least, most = SMALL_OPS
    counts = [count_ops(parse_module(gpt.gpt_loss(layers))) for layers in (1, 4)]
    assert least <= counts[0] < counts[1] <= most


def test_layers_repeat() -> None:
    """Each layer of an unrolled step adds as many ops as any other, and none of a new kind."""
    gpt = pytest.importorskip("benchmarks.programs.gpt", reason="the program is a JAX function")
    two, three, four = (gpt.gpt_step(layers) for layers in (2, 3, 4))
    counts = [count_ops(parse_module(text)) for text in (two, three, four)]
    assert counts[1] - counts[0] == counts[2] - counts[1] > 400
    # What takes or returns all parameters has a type of its own.
    assert {key[0] for key in set(_keys(four)) - set(_keys(two))} == {"func.func", "func.return"}


def test_the_step_is_as_large_as_the_one_first_measured() -> None:
    """32 layers are 14,000 ops of 200 kinds, as in the step that the targets were set with; scanned, a tenth."""
    pytest.importorskip("jax", reason="the program is a JAX function")
    text = MADE["gpt-32"].make()
    assert 13_500 < len(keys := _keys(text)) < 14_500
    assert 180 < len(set(keys)) < 230
    scanned = MADE["gpt-32-scanned"].make()
    assert "stablehlo.while" in scanned
    assert count_ops(parse_module(scanned)) < 1500


def test_no_two_ops_are_alike() -> None:
    """Each op of the program made for that has a name, types or attributes of its own."""
    keys = _keys(MADE["distinct"].make())
    assert len(keys) == len(set(keys))
    assert len(keys) == 10_000 + len(("module", "mesh", "function", "return"))
    with pytest.raises(ValueError, match="no multiple"):
        distinct_program(OPS_PER_BLOCK + 1)


def test_programs_hold_what_they_are_named_after() -> None:
    """The network convolves forward and backward; the search loops, branches, sorts, keeps the best and gathers."""
    pytest.importorskip("jax", reason="the programs are JAX functions")
    network, search = MADE["convolution"].make(), MADE["beam-search"].make()
    assert network.count("stablehlo.convolution") > 60
    assert "stablehlo.reduce_window" in network or "stablehlo.select_and_scatter" in network
    for name in ("stablehlo.while", "stablehlo.case", "stablehlo.sort", "chlo.top_k", "stablehlo.gather"):
        assert name in search, name


def test_programs_are_chosen_by_name_or_path(tmp_path: Path) -> None:
    """A name stands for a program made here, a path for a file or all modules of a folder, `all` for all made here."""
    for name in ("b.mlir", "a.mlir", "notes.txt"):
        (tmp_path / name).write_text("module {}")
    (tmp_path / "c.mlir.gz").write_bytes(gzip.compress(b"module {}"))
    chosen = list(choose_programs(["gpt-8", str(tmp_path)]))
    assert [program.name for program in chosen] == ["gpt-8", "a", "b", "c"]
    assert [program.is_file for program in chosen] == [False, True, True, True]
    assert chosen[3].make() == "module {}"
    assert tuple(choose_programs([])) == tuple(choose_programs(["all"])) == PROGRAMS
    with pytest.raises(OSError, match="no such file"):
        list(choose_programs(["gpt-7"]))
    with pytest.raises(ValueError, match=r"not one of \.mlir"):
        list(choose_programs([str(tmp_path / "notes.txt")]))
