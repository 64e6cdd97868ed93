"""How often loops run, and which devices collectives go over."""

import pytest

pytest.importorskip("jaxlib", reason="the frontend is jaxlib's")

from shardy_dialects.stablehlo.control_flow.cost import trip_count
from shardy_py.frontends.mlir import import_module, parse_module
from shardy_py.plugins import Registry

LOOP = """
func.func @main(%n: tensor<i32>) -> tensor<i32> {{
  %start = stablehlo.constant dense<{start}> : tensor<i32>
  %bound = stablehlo.constant dense<{bound}> : tensor<i32>
  %step = stablehlo.constant dense<{step}> : tensor<i32>
  %0:2 = stablehlo.while(%i = %start, %b = %bound) : tensor<i32>, tensor<i32>
  cond {{
    %p = stablehlo.compare {compare} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %j = stablehlo.{change} : tensor<i32>
    stablehlo.return %j, {next} : tensor<i32>, tensor<i32>
  }}
  return %0#0 : tensor<i32>
}}
"""


def _find(text, name):
    return next(op for op in import_module(parse_module(text)).walk() if op.name == name)


def _trips(compare, *, start=0, bound=5, step=1, change="add %i, %step", next="%b"):
    values = {"compare": compare, "start": start, "bound": bound, "step": step, "change": change, "next": next}
    return trip_count(_find(LOOP.format(**values), "stablehlo.while"))


def _simulated(test, start, bound, step):
    runs = 0
    while test(start, bound):
        start, runs = start + step, runs + 1
        if runs > 100:
            return None
    return runs


@pytest.mark.parametrize("step", [-3, -1, 1, 2, 3])
@pytest.mark.parametrize(("start", "bound"), [(0, 5), (5, 0), (2, 2), (-4, 4), (0, 6)])
@pytest.mark.parametrize(
    ("direction", "test"),
    [
        ("LT", lambda a, b: a < b),
        ("LE", lambda a, b: a <= b),
        ("GT", lambda a, b: a > b),
        ("GE", lambda a, b: a >= b),
        ("NE", lambda a, b: a != b),
    ],
)
def test_a_counting_loop_runs_as_often_as_a_simulation_says(direction, test, start, bound, step):
    """For every direction, start, bound and step; a loop that never ends has no number."""
    expected = _simulated(test, start, bound, step)
    assert _trips(f"{direction}, %i, %bound", start=start, bound=bound, step=step) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"compare": "GT, %bound, %i"}, 5),  # the other way around
        ({"compare": "LT, %i, %b"}, 5),  # the bound is carried along unchanged
        ({"compare": "LT, %i, %bound", "change": "add %step, %i", "step": 2}, 3),
        ({"compare": "GT, %i, %bound", "change": "subtract %i, %step", "start": 5, "bound": 0}, 5),
        ({"compare": "LT, %i, %n"}, None),  # the bound is not known
        ({"compare": "LT, %i, %b", "next": "%j"}, None),  # the bound changes
        ({"compare": "LT, %i, %bound", "change": "multiply %i, %step"}, None),
        ({"compare": "LT, %i, %bound", "change": "subtract %step, %i"}, None),
        ({"compare": "LT, %i, %bound", "change": "add %b, %step"}, None),
        ({"compare": "LT, %n, %bound"}, None),  # what is compared is not carried
        ({"compare": "EQ, %i, %bound"}, None),
        ({"compare": "LT, %i, %bound", "step": 0}, None),
    ],
)
def test_a_loop_counts_only_where_constants_say_so(options, expected):
    """The counter starts, ends and steps by constants; nothing else is guessed."""
    assert _trips(**options) == expected


def test_the_condition_runs_once_more_than_the_body():
    """It is asked before each run, and once to end the loop."""
    text = LOOP.format(compare="LT, %i, %bound", start=0, bound=5, step=1, change="add %i, %step", next="%b")
    op = _find(text, "stablehlo.while")
    assert Registry.from_entry_points().get_cost(op).get_region_runs(op) == (6, 5)


REDUCE = """
sdy.mesh @mesh = <["x"=2, "y"=2, "z"=3]>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = GROUPS,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
_AXIS = "#stablehlo.axis_ref<name = {}>"
_MESH_GROUPS = "#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [{}]>"


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ("dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>", (0, 2)),
        ("dense<[[4, 0, 2], [1, 3, -1]]> : tensor<2x3xi64>", (4, 0, 2)),
        (_MESH_GROUPS.format(_AXIS.format('"y"')), (0, 3)),
        (_MESH_GROUPS.format(_AXIS.format('"x"') + ", " + _AXIS.format('"z"')), (0, 1, 2, 6, 7, 8)),
    ],
)
def test_a_collective_goes_over_its_first_group(groups, expected):
    """Groups are lists of devices, or axes of a mesh whose devices are numbered row by row."""
    op = _find(REDUCE.replace("GROUPS", groups), "stablehlo.all_reduce")
    found = Registry.from_entry_points().get_cost(op).get_collective(op)
    assert (found.kind, found.group) == ("all_reduce", expected)


def test_a_permutation_goes_over_all_devices_it_names():
    """Sources and targets take part."""
    text = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 1], [1, 5]]> : tensor<2x2xi64>}
    : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    op = _find(text, "stablehlo.collective_permute")
    assert Registry.from_entry_points().get_cost(op).get_collective(op).group == (0, 1, 5)
