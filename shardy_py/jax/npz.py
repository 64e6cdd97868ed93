"""Arrays in files of numpy; what numpy has no dtype for keeps its bits."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, is_zipfile

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.jax.arguments import ArrayType


def read_inputs(path: Path, types: Sequence[ArrayType]) -> list[Any]:
    """Return the arrays of an ``.npz`` file for the arguments of a function.

    They are called ``arg0``, ``arg1`` and so on; without these names they are taken in the order of the file.

    Args:
        path: The file.
        types: What the arguments are. An array of raw bytes, as which numpy saves bfloat16 and the like, is taken to
            hold elements of the argument's dtype.

    Raises:
        OptionError: the file is none of numpy's, or an array is missing.
    """
    import numpy

    with path.open("rb") as stream:
        if not is_zipfile(stream):
            raise _no_arrays(path, "it is no .npz file")
    try:
        with numpy.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, BadZipFile, EOFError, AttributeError) as error:
        raise _no_arrays(path, str(error)) from None
    names = [f"arg{number}" for number in range(len(types))]
    if not any(name in arrays for name in names) and len(arrays) == len(types):
        names = list(arrays)
    missing = [name for name in names if name not in arrays]
    if missing:
        hint = f"the program has {len(types)} arguments; the file has {', '.join(arrays) or 'no array'}"
        raise OptionError(Diagnostic("missing-input", f"{path} has no array {missing[0]}", hint=hint))
    return [_typed(arrays[name], type_) for name, type_ in zip(names, types, strict=True)]


def _no_arrays(path: Path, reason: str) -> OptionError:
    hint = "write it with numpy.savez(path, arg0=..., arg1=...)"
    return OptionError(Diagnostic("no-npz", f"{path} holds no arrays of numpy: {reason}", hint=hint))


def outputs_file(results: Sequence[Any]) -> bytes:
    """Return an ``.npz`` file with results, called ``result0``, ``result1`` and so on."""
    import numpy

    buffer = io.BytesIO()
    numpy.savez(buffer, **{f"result{number}": numpy.asarray(value) for number, value in enumerate(results)})  # type: ignore[arg-type]
    return buffer.getvalue()


def _typed(array: Any, type_: ArrayType) -> Any:
    if array.dtype.kind == "V" and array.dtype.itemsize == type_.dtype.itemsize:
        return array.view(type_.dtype)
    return array
