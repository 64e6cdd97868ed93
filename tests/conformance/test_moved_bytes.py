"""Local programs move no more than XLA's partitioner does on the same shardings."""

from __future__ import annotations

import gzip
from pathlib import Path
from statistics import median

import pytest

from tests.conformance.asked_process import AskedProcess
from tests.conformance.conformance_data import DATA, need
from tests.conformance.moved_bytes import moved_bytes

pytestmark = pytest.mark.conformance

LARGEST, STEP = 60_000, 9
"""The sample: every ninth program by size, up to a number of characters."""
HLO = """HloModule m

%body (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %r = f32[4]{0} all-reduce(f32[4]{0} %p), replica_groups={{0,1},{2,3}}, to_apply=%add
}

ENTRY %main (a: f32[4]) -> f32[16] {
  %a = f32[4]{0} parameter(0)
  %w = f32[4]{0} while(f32[4]{0} %a), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"3"}}
  %s = f32[4]{0} collective-permute(f32[4]{0} %w), source_target_pairs={{0,1}}
  ROOT %g = f32[16]{0} all-gather(f32[4]{0} %s), replica_groups=[1,4]<=[4], dimensions={0}
}
"""


def test_bytes_are_those_on_the_wire() -> None:
    """A loop counts as often as it runs, and a collective by what one device sends."""
    assert moved_bytes(HLO) == 3 * 16 + 16 + 48


def test_local_programs_move_no_more_than_xla(tmp_path: Path) -> None:
    """In the middle of a sample of programs, no more bytes move than in what XLA's partitioner makes of them."""
    need("programs")
    texts = [gzip.decompress(path.read_bytes()).decode() for path in sorted((DATA / "programs").glob("*.mlir.gz"))]
    sample = sorted((text for text in texts if len(text) <= LARGEST), key=len)[::STEP]
    process = AskedProcess("tests.conformance.compare_bytes")
    try:
        actual = [_ratio(text, tmp_path / f"{number}.mlir", process) for number, text in enumerate(sample)]
    finally:
        process.close()
    ratios = [ratio for ratio in actual if ratio]
    print("worst ratios:", sorted(ratios)[-3:])
    assert len(ratios) >= len(sample) // 2
    assert median(ratios) <= 1.0


def _ratio(text: str, path: Path, process: AskedProcess) -> float | None:
    """Return the bytes of the local program over those of XLA; None where either does not take the program."""
    path.write_text(text)
    try:
        actual = process.ask(str(path))
    except EOFError:
        return None
    if actual is None:
        return None
    ours, xla = actual
    return float(ours / xla if xla else 1.0 + ours)
