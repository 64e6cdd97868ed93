"""Reading dimension numbers from their text."""

from __future__ import annotations

import pytest

from shardy_dialects.stablehlo.attributes import parse_convolution_dims, parse_dimension_numbers, parse_enum


def test_dimension_numbers_are_read_by_name():
    """Lists and numbers are found by their name, whatever the order and the white space."""
    numbers = parse_dimension_numbers(
        "#stablehlo.scatter<index_vector_dim=2,   update_window_dims = [2,3], inserted_window_dims = [ 0 ]>"
    )
    assert numbers.dims("update_window_dims") == (2, 3)
    assert numbers.dims("inserted_window_dims") == (0,)
    assert numbers.number("index_vector_dim") == 2


def test_absent_dimension_numbers_are_empty():
    """What the text leaves out is an empty list, or 0."""
    numbers = parse_dimension_numbers("#stablehlo.dot<>")
    assert numbers.dims("lhs_batching_dimensions") == ()
    assert numbers.number("index_vector_dim") == 0


def test_spatial_dimensions_are_in_the_order_of_their_labels():
    """The spatial dimension labelled 0 comes first wherever it stands."""
    dims = parse_convolution_dims("#stablehlo.conv<[1, b, 0, f]x[o, 1, 0, i]->[f, 0, 1, b]>")
    assert (dims.input_spatial, dims.kernel_spatial, dims.output_spatial) == ((2, 0), (2, 1), (1, 2))
    assert (dims.input_batch, dims.input_feature) == (1, 3)
    assert (dims.kernel_output_feature, dims.kernel_input_feature) == (0, 3)
    assert (dims.output_feature, dims.output_batch) == (0, 3)


def test_a_convolution_without_space_is_read():
    """A convolution may have no spatial dimension at all."""
    dims = parse_convolution_dims("#stablehlo.conv<[b, f]x[i, o]->[b, f]>")
    assert dims.input_spatial == ()


def test_other_text_is_an_error():
    """Text that is no convolution is refused with the text in the message."""
    with pytest.raises(ValueError, match="nonsense"):
        parse_convolution_dims("nonsense")


@pytest.mark.parametrize("text", ["#stablehlo<transpose ADJOINT>", " ADJOINT "])
def test_the_case_of_an_enum_is_its_last_word(text):
    """An enum is read in its attribute form and as a bare word."""
    assert parse_enum(text) == "ADJOINT"
