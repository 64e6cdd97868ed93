"""Files of exported programs of unknown origin: PyTorch would run code in them, the reader refuses it."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click import testing

from shardy_py.cli.app import shardy

pytestmark = pytest.mark.torch
MESH = ("--mesh", "x=2")


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return torch.relu(self.head(x)), x.sum(dim=0)


class _Payload:
    """An object whose pickle creates a file when it is read."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return open, (str(self.marker), "w")


def _saved(path: Path, *, is_dynamic: bool = False) -> Path:
    shapes = ({0: torch.export.Dim("batch")},) if is_dynamic else None
    torch.export.save(torch.export.export(_Model(), (torch.zeros(6, 8),), dynamic_shapes=shapes), str(path))
    return path


def _run(*words: str) -> testing.Result:
    return testing.CliRunner().invoke(shardy, list(words))


def test_a_program_comes_through(tmp_path: Path) -> None:
    """The module is the same as of a trusted file; what needs tensors says that there are none."""
    path = str(_saved(tmp_path / "m.pt2"))
    expected = _run("propagate", "-q", path, *MESH, "--in-sharding", "head.weight=x,None")
    done = _run("propagate", "-q", path, *MESH, "--in-sharding", "head.weight=x,None", "--untrusted")
    assert (done.exit_code, done.stdout) == (0, expected.stdout), done.stderr
    done = _run("run", path, *MESH, "--untrusted")
    assert done.exit_code == 2
    assert "without --untrusted" in done.stderr


def test_symbols_are_no_code(tmp_path: Path) -> None:
    """A dynamic size is that of the example, as in a trusted file."""
    path = str(_saved(tmp_path / "m.pt2", is_dynamic=True))
    words = ("propagate", "-q", path, *MESH, "--in-sharding", "head.weight=x,None")
    expected, done = _run(*words), _run(*words, "--untrusted")
    assert (done.exit_code, done.stdout) == (0, expected.stdout), done.stderr
    assert "6x8" in done.stdout


def _pickled(marker: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save({"x": _Payload(marker)}, buffer)
    return buffer.getvalue()


def _change_inputs(name: str, data: bytes, marker: Path) -> bytes:
    return _pickled(marker) if name.endswith("sample_inputs/model.pt") else data


def _change_weights(name: str, data: bytes, marker: Path) -> bytes:
    if name.endswith("weights/weight_0"):
        return _pickled(marker)
    return _in_json(name, data, "weights_config.json", lambda item: {**item, "use_pickle": True}, "use_pickle")


def _change_name(name: str, data: bytes, marker: Path) -> bytes:
    text = json.dumps(f"x=open({str(marker)!r}, 'w')")
    return data.replace(b'"x"', text.encode()) if name.endswith("models/model.json") else data


def _change_size(name: str, data: bytes, marker: Path) -> bytes:
    text = f"open({str(marker)!r}, 'w')"
    return _in_json(name, data, "models/model.json", lambda item: {**item, "expr_str": text}, "expr_str")


def _in_json(name: str, data: bytes, file: str, change: Callable[[Any], Any], key: str) -> bytes:
    """Return a file with every object of it changed that has a key."""

    def visit(item: Any) -> Any:
        if isinstance(item, list):
            return [visit(part) for part in item]
        if not isinstance(item, dict):
            return item
        item = {name: visit(part) for name, part in item.items()}
        return change(item) if key in item else item

    return json.dumps(visit(json.loads(data))).encode() if name.endswith(file) else data


@pytest.mark.parametrize("change", [_change_inputs, _change_weights, _change_name, _change_size])
def test_code_in_a_file_does_not_run(change: Callable[[str, bytes, Path], bytes], tmp_path: Path) -> None:
    """Pickles of objects, names and sizes that are Python: refused, with the reason, before anything happens."""
    marker, path = tmp_path / "marker", tmp_path / "bad.pt2"
    good = _saved(tmp_path / "good.pt2", is_dynamic=change is _change_size)
    changed = 0
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(path, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            new = change(name, data, marker)
            changed += new != data
            target.writestr(name, new)
    if not changed:
        pytest.skip("this version of PyTorch writes other files")
    done = _run("propagate", "-q", "--untrusted", str(path), *MESH)
    assert not marker.exists()
    assert done.exit_code == 2, done.stderr
    assert "[unsafe-file]" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["bad.pt2", "good.pt2"]


def test_a_file_that_is_no_program(tmp_path: Path) -> None:
    """It is the error of a trusted file."""
    path = tmp_path / "m.pt2"
    path.write_bytes(b"PK\x03\x04 nonsense")
    messages = [
        _run("propagate", str(path), *words).stderr.splitlines()[-2:] for words in (MESH, (*MESH, "--untrusted"))
    ]
    assert messages[0] == messages[1]
    assert "[invalid-pt2]" in messages[0][0]
