"""The pictures of the page about pipeline schedules are those that the product draws."""

from __future__ import annotations

from pathlib import Path

import pytest

import shardy_py as sdy

FOLDER = Path(__file__).parents[2] / "docs/explanation/pipelines"
PICTURES = {
    "gpipe": ("GPipe", 1),
    "1f1b": ("1F1B", 1),
    "zb-h1": ("ZB-H1", 1),
    "zb-h2": ("ZB-H2", 1),
    "interleaved": ("Interleaved1F1B", 2),
    "zb-v": ("ZB-V", 1),
    "dualpipe": ("DualPipe", 1),
}


def drawn(name: str) -> str:
    """Return a picture as the command draws it."""
    schedule, chunks = PICTURES[name]
    return sdy.mpmd.simulate(sdy.mpmd.build_schedule(schedule, meshes=4, microbatches=8, chunks=chunks)).svg()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_the_product_draws(name: str) -> None:
    """Run this file as a program to draw them anew."""
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == drawn(name)


def test_there_is_no_other_picture() -> None:
    """Each file is in the table above, and on the page."""
    page = FOLDER.with_suffix(".md").read_text(encoding="utf-8")
    names = sorted(path.stem for path in FOLDER.iterdir())
    assert names == sorted(PICTURES)
    assert all(f"(pipelines/{name}.svg)" in page for name in names)


if __name__ == "__main__":
    for picture in PICTURES:
        (FOLDER / f"{picture}.svg").write_text(drawn(picture), encoding="utf-8")
