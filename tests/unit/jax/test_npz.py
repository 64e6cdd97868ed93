"""Files of arrays."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("ml_dtypes")

from shardy_py.errors import OptionError  # noqa: E402
from shardy_py.jax.arguments import ArrayType  # noqa: E402
from shardy_py.jax.npz import read_inputs  # noqa: E402

TYPES = [ArrayType((2,), np.dtype("float32"))]


def save_one(path: Path) -> None:
    """Write one array without a name."""
    with path.open("wb") as stream:
        np.save(stream, np.zeros(2, np.float32))


def test_arrays_go_by_name_or_order(tmp_path: Path) -> None:
    """An array is an argument by its name; other names count by their place."""
    for name in ("arg0", "x"):
        np.savez(tmp_path / "in.npz", **{name: np.ones(2, np.float32)})
        assert read_inputs(tmp_path / "in.npz", TYPES)[0].tolist() == [1, 1]


@pytest.mark.parametrize(
    "write",
    [save_one, lambda path: path.write_bytes(pickle.dumps([1])), lambda path: path.write_text("text"), Path.touch],
)
def test_other_files_are_refused(write: object, tmp_path: Path) -> None:
    """One array, a pickle, text and nothing are no arrays with names; nobody is told to load a pickle."""
    path = tmp_path / "in.npz"
    write(path)  # type: ignore[operator]
    with pytest.raises(OptionError, match=r"in\.npz holds no arrays of numpy: it is no \.npz file") as caught:
        read_inputs(path, TYPES)
    assert "numpy.savez" in caught.value.diagnostics[0].hint
    assert "pickle" not in str(caught.value)
