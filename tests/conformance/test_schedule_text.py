"""Real programs: the default schedule written as data gives what the built-in one gives."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

pytest.importorskip("jaxlib")

import shardy_py as sdy
from shardy_py.schedule.builtin import DEFAULT
from shardy_py.schedule.toml import format_schedule
from tests.conformance.conformance_data import DATA, need

need("programs")

NAMES = sorted(path.name.removesuffix(".mlir.gz") for path in (DATA / "programs").glob("*.mlir.gz"))


@pytest.mark.conformance
@pytest.mark.parametrize("name", NAMES)
def test_the_default_read_from_a_file_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    """Each program comes out the same to the byte, or is refused alike."""
    path = tmp_path / "default.toml"
    path.write_text(format_schedule(DEFAULT))
    text = gzip.decompress((DATA / "programs" / f"{name}.mlir.gz").read_bytes()).decode()
    assert _outcome(text, schedule=path) == _outcome(text)


def _outcome(text: str, **options: Path) -> str:
    try:
        return sdy.propagate(text, **options).text  # type: ignore[arg-type]
    except sdy.ShardyError as error:
        return str(error)
