"""Feature ``linalg``: matrix ops, Fourier transforms, normalisation."""

from __future__ import annotations

from shardy_py.oracle.generate.program import BlockBuilder, GeneratedValue, ResultType, array


def _batched(block: BlockBuilder, *matrix: int) -> GeneratedValue:
    batch = block.module.shape(low=0, high=2)
    return block.tensor((*batch, *matrix))


def cholesky(block: BlockBuilder) -> None:
    """A decomposition of square matrices."""
    size = block.choices.pick(block.module.sizes)
    value = _batched(block, size, size)
    block.op("stablehlo.cholesky", [value], [(value.shape, "f32")], {"lower": "true"})


def triangular_solve(block: BlockBuilder) -> None:
    """A triangular system from either side."""
    size, other = (block.choices.pick(block.module.sizes) for _ in range(2))
    a = _batched(block, size, size)
    on_left = block.choices.chance(50)
    b = block.tensor((*a.dims[:-2], size, other) if on_left else (*a.dims[:-2], other, size))
    how = block.choices.pick(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    attributes = {
        "left_side": str(on_left).lower(),
        "lower": str(block.choices.chance(50)).lower(),
        "unit_diagonal": str(block.choices.chance(50)).lower(),
        "transpose_a": f"#stablehlo<transpose {how}>",
    }
    block.op("stablehlo.triangular_solve", [a, b], [(b.shape, "f32")], attributes)


def fft(block: BlockBuilder) -> None:
    """A Fourier transform over the last dimensions: complex, or between real and complex numbers of other sizes."""
    value = block.value(lambda item: item.dtype == "f32" and min(item.dims) > 0, low=1)
    if value.dtype != "f32" or min(value.dims) < 1:
        return
    length = list(value.dims[-block.choices.integer(1, min(3, value.rank)) :])
    if block.choices.chance(50):
        result = (*value.dims[:-1], value.dims[-1] // 2 + 1)
        _fft(block, value, "RFFT", length, (result, "complex<f32>"))
        return
    number = block.op("stablehlo.complex", [value, value], [(value.shape, "complex<f32>")])[0]
    if block.choices.chance(30):
        length[-1] = 2 * length[-1] - 2 + block.choices.integer(0, 1)
        if length[-1] > 0:
            _fft(block, number, "IRFFT", length, ((*value.dims[:-1], length[-1]), "f32"))
        return
    _fft(block, number, block.choices.pick(("FFT", "IFFT")), length, (value.dims, "complex<f32>"))


def _fft(
    block: BlockBuilder, value: GeneratedValue, kind: str, length: list[int], result: tuple[tuple[int, ...], str]
) -> None:
    attributes = {"fft_type": f"#stablehlo<fft_type {kind}>", "fft_length": array(length)}
    block.op("stablehlo.fft", [value], [result], attributes)


def batch_norm(block: BlockBuilder) -> None:
    """Batch normalisation, for inference for the most part; the reference has no rule for the others."""
    value = block.tensor(block.module.shape(low=1))
    feature = block.choices.integer(0, value.rank - 1)
    shape = (value.dims[feature],)
    attributes = {"epsilon": "0.001 : f32", "feature_index": f"{feature} : i64"}
    kind = block.choices.pick(("inference", "inference", "training", "grad"))
    rest = [block.tensor(shape) for _ in range({"inference": 4, "training": 2, "grad": 3}[kind])]
    if kind == "grad":
        rest.append(block.tensor(value.dims))
    results: list[ResultType] = [(value.shape, "f32")]
    if kind != "inference":
        results += [(shape, "f32")] * 2
    block.op(f"stablehlo.batch_norm_{kind}", [value, *rest], results, attributes)


EMITTERS = {"linalg": ((1, cholesky), (2, triangular_solve), (1, fft), (1, batch_norm))}
