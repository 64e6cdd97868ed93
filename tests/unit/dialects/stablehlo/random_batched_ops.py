"""Random ops on matrices and vectors in batches, Fourier transforms and normalizations."""

from __future__ import annotations

from tests.unit.dialects.stablehlo.random_ops import SIZES, array, function_of, shape, tensor


def dot(random):
    """Of vectors and matrices."""
    size, rows, columns = random.choice(SIZES), shape(random, 0, 1), shape(random, 0, 1)
    return function_of("dot", [tensor([*rows, size]), tensor([size, *columns])], [tensor(rows + columns)])


def cholesky(random):
    """From either triangle."""
    size = random.choice(SIZES)
    type_ = tensor([*shape(random, 0, 3), size, size])
    return function_of("cholesky", [type_], [type_], random.choice(["", "lower = true"]))


def triangular_solve(random):
    """From either side, of a matrix or what it is transposed to."""
    batch, size, other, on_left = shape(random, 0, 3), random.choice(SIZES), random.choice(SIZES), random.random() < 0.5
    how = random.choice(["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
    flags = ", ".join(f"{name} = {random.choice(['true', 'false'])}" for name in ("lower", "unit_diagonal"))
    attributes = f"left_side = {str(on_left).lower()}, {flags}, transpose_a = #stablehlo<transpose {how}>"
    solution = tensor([*batch, size, other] if on_left else [*batch, other, size])
    return function_of("triangular_solve", [tensor([*batch, size, size]), solution], [solution], attributes)


def fft(random):
    """Of each kind, over up to three dimensions."""
    kind, full_shape = random.choice(["FFT", "IFFT", "RFFT", "IRFFT"]), shape(random, 1)
    lengths = full_shape[-random.randint(1, min(3, len(full_shape))) :]
    half = [*full_shape[:-1], full_shape[-1] // 2 + 1 if full_shape[-1] else 0]
    full, real, short = tensor(full_shape, "complex<f32>"), tensor(full_shape), tensor(half, "complex<f32>")
    operand, result = {"RFFT": (real, short), "IRFFT": (short, real)}.get(kind, (full, full))
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {array(lengths)}"
    return function_of("fft", [operand], [result], attributes)


def batch_norm_inference(random):
    """Along any feature dimension."""
    sizes = shape(random, 1)
    feature = random.randrange(len(sizes))
    attributes = f"epsilon = 0.1 : f32, feature_index = {feature} : i64"
    operands = [tensor(sizes), *[tensor([sizes[feature]])] * 4]
    return function_of("batch_norm_inference", operands, [tensor(sizes)], attributes)


GENERATORS = (dot, cholesky, triangular_solve, fft, batch_norm_inference)
