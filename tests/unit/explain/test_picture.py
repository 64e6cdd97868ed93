"""Pictures of shardings: which device has which part."""

from __future__ import annotations

import pytest

import shardy_py as sdy
from shardy_py.errors import OptionError
from shardy_py.explain.picture import picture_of
from shardy_py.report.axis_colors import axis_hues, tint
from shardy_py.sharding.mesh import Mesh, MeshAxis
from shardy_py.sharding.parse import parse_tensor_sharding

MESH = Mesh.of(x=4, y=2)


def picture(shape: tuple[int | None, ...], dims: str, mesh: Mesh = MESH) -> list[str]:
    """Return the lines of a picture below the title."""
    return str(picture_of("%v", shape, parse_tensor_sharding(f"<@mesh, {dims}>"), mesh)).splitlines()[1:]


def test_rows_and_columns() -> None:
    """The last dimension has the columns, and a part shows all devices that hold it."""
    assert picture((8, 6), '[{"y"}, {"x":(2)2}]') == [
        "rows: dimension 0; columns: dimension 1",
        "      0:3   3:6",
        "    +-----+-----+",
        "0:4 | 0 4 | 2 6 |",
        "    +-----+-----+",
        "4:8 | 1 5 | 3 7 |",
        "    +-----+-----+",
    ]


def test_only_rows() -> None:
    """Where the last dimension is whole, there is one column; devices are those of the mesh's order."""
    mesh = Mesh((MeshAxis("x", 4),), (3, 2, 1, 0))
    assert picture((4, 8), '[{"x"}, {}]', mesh)[:5] == [
        "rows: dimension 0",
        "      all",
        "    +-----+",
        "0:1 |  3  |",
        "    +-----+",
    ]


def test_several_dimensions_above() -> None:
    """The rows of a tensor of three dimensions are the parts of the first two, together."""
    lines = picture((4, 4, 4), '[{"y"}, {"x":(1)2}, {"x":(2)2}]')
    assert lines[0] == "rows: dimensions 0, 1; columns: dimension 2"
    assert lines[3::2] == [
        "0:2, 0:2 |  0  |  2  |",
        "0:2, 2:4 |  4  |  6  |",
        "2:4, 0:2 |  1  |  3  |",
        "2:4, 2:4 |  5  |  7  |",
    ]


def test_padding_unknown_sizes_and_partial_sums() -> None:
    """A part without elements is padding; parts of an unknown size have numbers; partial sums are said."""
    assert picture((5,), '[{"x"}]')[1].split() == ["0:2", "2:4", "4:5", "padding"]
    assert picture((None,), '[{"y"}]')[1].split() == ["part", "0", "part", "1"]
    (notes, *_) = picture((8,), '[{"y"}], unreduced={"x"}')
    assert notes == 'columns: dimension 0; unreduced along "x": the devices of a part hold values that add up'


def test_large_meshes_are_shortened() -> None:
    """The middle of many rows and columns is left out."""
    lines = picture((128, 128), '[{"a"}, {"b"}]', Mesh.of(a=128, b=128))
    assert len(lines) == 3 + 2 * 17
    assert lines[-2].split("|")[-2].strip() == "16383"
    assert lines[1].split()[4] == "..."


PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %t: !stablehlo.token)
    -> (tensor<8xf32> {jax.result_info = "result['out']"}, tensor<f32>) {
  %0 = stablehlo.negate %a : tensor<8xf32>
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  return %0, %c : tensor<8xf32>, tensor<f32>
}
"""


def test_tensors_of_a_result() -> None:
    """Arguments, values and results are drawn, those that nothing shards on every device."""
    result = sdy.propagate(PROGRAM)
    for value in (0, "%0", "result0", "result['out']", result.value("%0")):
        assert str(result.picture(value)).splitlines()[2].split() == ["0:4", "4:8"]
    assert str(result.picture("result1")).splitlines()[-2] == "all | 0-3 |"
    html = result.picture("result0")._repr_html_()
    assert html.count("<td") == 2
    assert "&lt;@mesh" in html


def test_what_has_no_picture() -> None:
    """Values that do not exist and those that are no tensors are errors that say so."""
    result = sdy.propagate(PROGRAM)
    with pytest.raises(OptionError, match="no value %9"):
        result.picture("%9")
    with pytest.raises(OptionError, match="only tensors have parts"):
        result.picture(1)


def test_notebooks_show_a_result_with_the_colours_of_its_axes():
    """Each dimension has its axes as chips, in the hues that pages have."""
    result = sdy.propagate(
        """
        sdy.mesh @mesh = <["data"=4, "model"=2]>
        func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
                        %b: tensor<2xf32>) -> tensor<8x4xf32> {
          return %a : tensor<8x4xf32>
        }
        """
    )
    html = result._repr_html_()
    assert html.count("<tr>") == 3
    for axis, hue in axis_hues(["data", "model"]).items():
        assert html.count(f'background:{tint(hue)};color:#000;border-radius:3px;padding:0 .4em">{axis}</span>') == 2
    assert html.count("on every device") == 1
