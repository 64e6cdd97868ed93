"""Feature ``linalg``: matrix ops, Fourier transforms, normalisation."""

from __future__ import annotations

from shardy_py.oracle.generate.program import Block, Tensor, array


def _batched(block: Block, *matrix: int) -> Tensor:
    batch = block.module.shape(low=0, high=2)
    return block.tensor((*batch, *matrix))


def cholesky(block: Block) -> None:
    """A decomposition of square matrices."""
    size = block.choices.pick(block.module.sizes)
    value = _batched(block, size, size)
    block.op("stablehlo.cholesky", [value], [(value.shape, "f32")], {"lower": "true"})


def triangular_solve(block: Block) -> None:
    """A triangular system from either side."""
    size, other = (block.choices.pick(block.module.sizes) for _ in range(2))
    a = _batched(block, size, size)
    on_left = block.choices.chance(50)
    b = block.tensor((*a.dims[:-2], size, other) if on_left else (*a.dims[:-2], other, size))
    how = block.choices.pick(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    attributes = {
        "left_side": str(on_left).lower(),
        "lower": "true",
        "unit_diagonal": "false",
        "transpose_a": f"#stablehlo<transpose {how}>",
    }
    block.op("stablehlo.triangular_solve", [a, b], [(b.shape, "f32")], attributes)


def fft(block: Block) -> None:
    """A Fourier transform over the last dimensions: complex, or real with a shorter result."""
    value = block.value(lambda item: item.dtype == "f32" and min(item.dims) > 0, low=1)
    if value.dtype != "f32" or min(value.dims) < 1:
        return
    length = list(value.dims[-block.choices.integer(1, min(2, value.rank)) :])
    if block.choices.chance(50):
        result = (*value.dims[:-1], value.dims[-1] // 2 + 1)
        _fft(block, value, "RFFT", length, (result, "complex<f32>"))
        return
    number = block.op("stablehlo.complex", [value, value], [(value.shape, "complex<f32>")])[0]
    _fft(block, number, block.choices.pick(("FFT", "IFFT")), length, (value.dims, "complex<f32>"))


def _fft(block: Block, value: Tensor, kind: str, length: list[int], result: tuple[tuple[int, ...], str]) -> None:
    attributes = {"fft_type": f"#stablehlo<fft_type {kind}>", "fft_length": array(length)}
    block.op("stablehlo.fft", [value], [result], attributes)


def batch_norm(block: Block) -> None:
    """Batch normalisation for inference."""
    value = block.tensor(block.module.shape(low=2))
    feature = block.choices.integer(0, value.rank - 1)
    rest = [block.tensor((value.dims[feature],)) for _ in range(4)]
    attributes = {"epsilon": "0.001 : f32", "feature_index": f"{feature} : i64"}
    block.op("stablehlo.batch_norm_inference", [value, *rest], [(value.shape, "f32")], attributes)


EMITTERS = {"linalg": ((1, cholesky), (2, triangular_solve), (1, fft), (1, batch_norm))}
