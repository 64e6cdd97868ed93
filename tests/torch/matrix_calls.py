"""Calls of operators over matrices, of Fourier transforms and of distances."""

from __future__ import annotations

import torch

from tests.torch.rule_tensors import COMPLEX, FACTOR, OVERLAPPING, ROWS, SIDES, SQUARE, Arguments, X, Y, floats, given

_FACTORED = (
    *("linalg_eig", "linalg_eigvals", "linalg_lu", "linalg_lu_factor", "linalg_ldl_factor", "linalg_cond"),
    "pinverse",
)
_OF_MATRICES = (
    *(
        "linalg_cholesky",
        "cholesky",
        "linalg_cholesky_ex",
        "linalg_inv",
        "inverse",
        "linalg_inv_ex",
        "linalg_det",
        "det",
    ),
    *("logdet", "slogdet", "linalg_slogdet", "linalg_qr", "linalg_svd", "linalg_svdvals", "linalg_eigh"),
    *("linalg_eigvalsh", "linalg_matrix_exp", "matrix_exp", "_linalg_det", "_linalg_slogdet", "_linalg_eigh"),
    "_linalg_svd",
)

MATRIX_CALLS: dict[str, Arguments] = {
    **{f"{name}.default": given(SQUARE) for name in _OF_MATRICES},
    **{f"{name}.default": given(SQUARE) for name in _FACTORED},
    "cholesky_inverse.default": given(FACTOR),
    "linalg_solve_ex.default": given(SQUARE, SIDES),
    "linalg_householder_product.default": given(floats(6, 8, 4), floats(6, 4)),
    "linalg_pinv.default": given(SQUARE, 1e-3),
    "linalg_lu_solve.default": given(*torch.linalg.lu_factor(SQUARE), SIDES),
    "linalg_pinv.atol_rtol_tensor": given(SIDES, atol=torch.tensor(0.1), rtol=torch.tensor(0.1)),
    "linalg_matrix_rank.atol_rtol_tensor": given(OVERLAPPING, atol=torch.tensor(0.01), rtol=torch.tensor(0.01)),
    "linalg_tensorinv.default": given(SQUARE[0].reshape(2, 2, 4), 2),
    "linalg_tensorsolve.default": given(SQUARE[0].reshape(2, 2, 4), floats(2, 2)),
    **{f"fft_{name}.default": given(COMPLEX) for name in ("hfft2", "hfftn")},
    **{f"fft_{name}.default": given(X, [4, 6]) for name in ("ihfft2", "ihfftn")},
    "stft.default": given(floats(6, 40), 8, 4, None, None, False, True, True),
    "istft.default": given(
        torch.stft(floats(6, 40), 8, 4, window=torch.hann_window(8), return_complex=True),
        8,
        4,
        None,
        torch.hann_window(8),
    ),
    "linalg_diagonal.default": given(floats(6, 4, 4)),
    "diagflat.default": given(floats(6)),
    "cross.default": given(floats(6, 3, 8), floats(6, 3, 8) + 1, 1),
    "dist.default": given(X, Y),
    **dict.fromkeys(("pdist.default", "_pdist_forward.default"), given(floats(6, 8))),
    **dict.fromkeys(("linalg_matrix_power.default", "matrix_power.default"), given(SQUARE, 3)),
    "linalg_solve.default": given(SQUARE, SIDES),
    "_linalg_solve_ex.default": given(SQUARE, SIDES),
    "linalg_solve_triangular.default": given(FACTOR, SIDES, upper=False),
    "cholesky_solve.default": given(SIDES, FACTOR),
    "triangular_solve.default": given(SIDES, FACTOR, False),
    **{f"fft_{name}.default": given(COMPLEX) for name in ("fft", "ifft", "irfft", "hfft")},
    **{f"fft_{name}.default": given(X, 6) for name in ("rfft", "ihfft")},
    **{f"fft_{name}.default": given(COMPLEX) for name in ("fft2", "ifft2", "irfft2")},
    "fft_rfft2.default": given(X, [4, 6]),
    **{f"fft_{name}.default": given(COMPLEX, [4, 8]) for name in ("fftn", "ifftn", "irfftn")},
    "fft_rfftn.default": given(X, [4, 6]),
    **{f"fft_{name}.default": given(X, [1]) for name in ("fftshift", "ifftshift")},
    "_fft_r2c.default": given(X, [0], 0, True),
    "_fft_c2c.default": given(COMPLEX, [1], 0, True),
    "_fft_c2r.default": given(COMPLEX, [1], 0, 6),
    **dict.fromkeys(("diagonal.default", "diagonal_copy.default"), given(X, 0, 0, 2)),
    "diag_embed.default": given(ROWS),
    **{f"{name}.default": given(floats(6, 8)) for name in ("trace", "diag")},
    "cdist.default": given(X, floats(6, 10, 8)),
    "_cdist_forward.default": given(X, floats(6, 10, 8), 2.0, None),
    "cosine_similarity.default": given(X, Y, 1),
    "pairwise_distance.default": given(X, Y),
    "linalg_cross.default": given(floats(6, 3, 8), floats(6, 3, 8) + 1, dim=1),
    "linalg_vecdot.default": given(X, Y, dim=1),
    "inner.default": given(X, floats(10, 8)),
    "tensordot.default": given(X, floats(8, 6, 10), [0, 2], [1, 0]),
}
"""The arguments by the name of the overload."""
