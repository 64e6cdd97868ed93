"""Timelines of programs on machines."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("jaxlib", reason="the programs are MLIR text")

import shardy_py as sdy
from shardy_py.mpmd.pipeline_program import PipelineProgram

TENSOR = "tensor<1024x1024xf32>"
SIZE = 1024 * 1024 * 4
STEP = f"""\
func.func @main(%w: {TENSOR}, %v: {TENSOR}, %x: {TENSOR}, %y: {TENSOR}) -> ({TENSOR}, {TENSOR}) {{
  %0 = mpmd.call @step(%w, %v, %x) {{call_counter = 0 : ui32}} : ({TENSOR}, {TENSOR}, {TENSOR}) -> {TENSOR}
  %1 = mpmd.call @step(%w, %v, %y) {{call_counter = 1 : ui32}} : ({TENSOR}, {TENSOR}, {TENSOR}) -> {TENSOR}
  return %0, %1 : {TENSOR}, {TENSOR}
}}
func.func private @step(%w: {TENSOR}, %v: {TENSOR}, %x: {TENSOR}) -> {TENSOR} {{
  %0 = mpmd.named_computation<"first"> (%w, %x) (%a: {TENSOR}, %b: {TENSOR}) {{
    %r = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0] : ({TENSOR}, {TENSOR}) -> {TENSOR}
    mpmd.return %r : {TENSOR}
  }} : ({TENSOR}, {TENSOR}) -> {TENSOR}
  %1 = mpmd.named_computation<"second"> (%v, %0) (%a: {TENSOR}, %b: {TENSOR}) {{
    %r = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0] : ({TENSOR}, {TENSOR}) -> {TENSOR}
    mpmd.return %r : {TENSOR}
  }} : ({TENSOR}, {TENSOR}) -> {TENSOR}
  return %1 : {TENSOR}
}}
"""


@pytest.fixture(scope="module")
def program() -> PipelineProgram:
    """Return two microbatches through two stages of one product each."""
    return sdy.mpmd.partition(STEP, {"m0": {"x": 1}, "m1": {"x": 1}}, {"first": "m0", "second": "m1"})


def test_fragments_wait_for_their_mesh_and_their_operands(program: PipelineProgram) -> None:
    """The second mesh starts after the first transfer; both products of a mesh follow each other."""
    timeline = program.simulate("h100-8")
    first, second = ([event for event in timeline.events if event.mesh == mesh] for mesh in ("m0", "m1"))
    runs = [event for event in second if not event.is_transfer]
    transfers = [event for event in second if event.is_transfer]
    assert [event.start for event in first] == [0.0, pytest.approx(first[0].end)]
    assert transfers[0].start == first[0].end
    assert runs[0].start == pytest.approx(transfers[0].end)
    product = first[0].end
    assert timeline.makespan == pytest.approx(3 * product + (transfers[0].end - transfers[0].start))
    assert timeline.busy("m1") == pytest.approx(2 * product)
    assert timeline.sent_bytes == 2 * SIZE


def test_a_mesh_holds_its_arguments_and_what_is_still_used(program: PipelineProgram) -> None:
    """The first mesh holds the weight and both inputs, and a result until it is sent."""
    timeline = program.simulate("h100-8")
    assert timeline.peak_bytes["m0"] >= 4 * SIZE
    assert timeline.peak_bytes["m0"] <= 5 * SIZE
    assert "holds up to" in str(timeline)


def test_what_is_in_the_memory_of_the_host_is_on_no_device() -> None:
    """A weight that comes from there is copied for each microbatch, and both copies are held until they are used."""
    meshes, names = {"m0": {"x": 1}, "m1": {"x": 1}}, {"first": "m0", "second": "m1"}
    program = sdy.mpmd.partition(STEP, meshes, names, input_meshes={0: "m0#pinned_host"})
    # Both inputs, both copies and the first product.
    assert program.simulate("h100-8").peak_bytes["m0"] == 5 * SIZE


def test_a_machine_may_be_a_file(program: PipelineProgram, tmp_path: Path) -> None:
    """A path names one as a text does."""
    path = tmp_path / "pair.toml"
    path.write_text(
        'name = "pair"\n[device]\nmemory_bytes = 16e9\nmemory_bandwidth = 800e9\n[device.flops]\ndefault = 50e12\n'
        '[[link]]\nname = "x"\nsize = 2\ntopology = "ring"\nbandwidth = 25e9\n'
    )
    assert program.simulate(path) == program.simulate(str(path))


def test_a_trace_has_fragments_and_transfers_of_each_mesh(program: PipelineProgram) -> None:
    """Perfetto shows transfers in a row of their own."""
    events = program.simulate("h100-8").trace_events()
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == ["m0", "m1"]
    assert [event["tid"] for event in events if event["ph"] == "X" and event["pid"] == 1].count(1) == 2
