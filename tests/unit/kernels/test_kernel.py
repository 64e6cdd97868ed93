"""Kernels as values: what they know before they are lowered, their stages, and running them."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="fusions are read through the extra 'stablehlo'")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.errors import OptionError
from shardy_py.kernels import emit
from tests.unit.kernels.fusions import LOG_TRANSPOSE_ADD, NEGATE, fusion_of


def test_stages_have_names_and_numbers() -> None:
    """A stage is found by its number, its name, or both; the last of several with one name counts."""
    kernel = emit(fusion_of(NEGATE.format(shape="300")))
    assert kernel.stage("initial") == kernel.stages["initial"]
    assert kernel.stage("01") == kernel.stage("01.canonicalize") == kernel.stages["01.canonicalize"]
    last = [name for name in kernel.stages if name.endswith(".cse")][-1]
    assert kernel.stage("cse") == kernel.stages[last]
    with pytest.raises(OptionError, match="no stage 'canonicalise'"):
        kernel.stage("canonicalise")


def test_kernels_run_at_every_stage() -> None:
    """A kernel gives the same numbers by default and at any stage."""
    kernel = emit(fusion_of(LOG_TRANSPOSE_ADD.format(n=9)))
    x = np.linspace(1, 5, 81, dtype=np.float32).reshape(9, 9)
    expected = np.log(x) + np.log(x).T
    for stage in (None, "initial", "flatten-tensors", "cse"):
        (found,) = kernel.run(x, stage=stage)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_text_for_llvm_is_no_module() -> None:
    """The interpreter refuses the text for LLVM, and says what runs it; the host takes no other stage."""
    kernel = emit(fusion_of(NEGATE.format(shape="300")))
    x = np.ones(300, np.float32)
    with pytest.raises(OptionError, match='on="host"'):
        kernel.run(x, stage="to-llvm")
    with pytest.raises(OptionError, match="last stage"):
        kernel.run(x, stage="initial", on="host")


def test_the_device_decides_the_launch() -> None:
    """Elements are united per thread only where there are more of them than the device keeps threads."""
    fusion = fusion_of(NEGATE.format(shape="262144"))
    assert emit(fusion, device="h100").launch.unroll == 1
    assert emit(fusion, device="a100").launch.unroll == 4


def test_maps_of_loops() -> None:
    """The map of a loop kernel is there without any module."""
    (map_,) = emit(fusion_of(NEGATE.format(shape="300"))).maps
    assert "bl_x * 128 + th_x in [0, 299]" in str(map_)
