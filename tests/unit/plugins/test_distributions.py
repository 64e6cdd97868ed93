"""Entry points are those that importlib.metadata finds, wherever and however they are written."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from shardy_py.plugins import distributions
from shardy_py.plugins.distributions import EntryPoint, entry_points

GROUP = "shardy_py.dialects"
METADATA = "Metadata-Version: 2.1\nName: Some.Package\nVersion: 1.2\n\nName: not this\n"


def _write(folder: Path, points: str, about: str | None = METADATA, file: str = "METADATA") -> None:
    folder.mkdir(parents=True)
    (folder / "entry_points.txt").write_text(points)
    if about is not None:
        (folder / file).write_text(about)


def _found(points: list[object]) -> list[tuple[str, ...]]:
    return sorted((item.name, item.value, item.dist.name, item.dist.version) for item in points)


def _plain(site: Path) -> None:
    _write(
        site / "some_package-1.2.dist-info", f"[other]\na = b\n\n[{GROUP}]\n# no = this\none = os.path\ntwo=os:sep\n"
    )


def _only_named(site: Path) -> None:
    _write(site / "some_package-1.2.dist-info", f"[other]\na = {GROUP}\n")


def _of_one_name(site: Path) -> None:
    _plain(site)
    _write(site / "later" / "Some.Package-1.1.dist-info", f"[{GROUP}]\nthree = os\n", METADATA.replace("1.2", "1.1"))
    sys.path.append(str(site / "later"))


def _without_metadata(site: Path) -> None:
    _write(site / "some_package-1.2.dist-info", "", None)
    (site / "some_package-1.2.dist-info" / "entry_points.txt").unlink()


PLAIN = (_plain, _only_named, _of_one_name, _without_metadata)


def _with_extras(site: Path) -> None:
    _write(site / "some_package-1.2.dist-info", f"[{GROUP}]\none = os [more]\n")


def _of_setuptools(site: Path) -> None:
    _write(site / "some_package.egg-info", f"[{GROUP}]\none = os\n", file="PKG-INFO")


def _egg(site: Path) -> None:
    _write(site / "some_package-1.2-py3.egg" / "EGG-INFO", f"[{GROUP}]\none = os\n", file="PKG-INFO")
    sys.path.append(str(site / "some_package-1.2-py3.egg"))


def _archive(site: Path) -> None:
    with zipfile.ZipFile(site / "packages.zip", "w") as archive:
        archive.writestr("some_package-1.2.dist-info/entry_points.txt", f"[{GROUP}]\none = os\n")
        archive.writestr("some_package-1.2.dist-info/METADATA", METADATA)
    sys.path.append(str(site / "packages.zip"))


def _lower_case_headers(site: Path) -> None:
    _write(site / "some_package-1.2.dist-info", f"[{GROUP}]\none = os\n", METADATA.lower())


def _other_finder(site: Path) -> None:
    _plain(site)

    class Finder:
        @staticmethod
        def find_spec(*_: object) -> None:
            return None

        @staticmethod
        def find_distributions(context: object = None) -> list[metadata.Distribution]:
            return [metadata.PathDistribution(site / "elsewhere" / "other-3.dist-info")]

    _write(site / "elsewhere" / "other-3.dist-info", f"[{GROUP}]\nother = os\n", "Name: other\nVersion: 3\n")
    sys.meta_path.append(Finder)


UNUSUAL = (_with_extras, _of_setuptools, _egg, _archive, _lower_case_headers, _other_finder)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is the whole search path, but for a folder and an archive that are missing."""
    # What runs the tests may have finders of its own; the backport of the library takes a task from PathFinder.
    path_finder = distributions.PathFinder
    finders = [
        finder for finder in sys.meta_path if finder is not path_finder and not hasattr(finder, "find_distributions")
    ]
    monkeypatch.setattr(sys, "meta_path", [*finders, path_finder])
    standard = metadata.MetadataPathFinder.find_distributions
    monkeypatch.setattr(path_finder, "find_distributions", staticmethod(standard), raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "none"), str(tmp_path / "none.zip")])
    return tmp_path


@pytest.mark.parametrize("install", [*PLAIN, *UNUSUAL])
def test_the_entry_points_are_those_of_the_standard_library(site: Path, install: Callable[[Path], None]) -> None:
    """Names, places, distributions and versions are the same."""
    install(site)
    assert _found(entry_points(group=GROUP)) == _found(list(metadata.entry_points(group=GROUP)))


@pytest.mark.parametrize("install", PLAIN)
def test_what_installers_write_is_read_here(
    site: Path, install: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The standard library is not asked about folders with the usual metadata."""
    install(site)
    monkeypatch.delattr(metadata, "entry_points")
    assert all(isinstance(item, EntryPoint) for item in entry_points(group=GROUP))


@pytest.mark.parametrize("install", UNUSUAL)
def test_the_rest_is_left_to_the_standard_library(
    site: Path, install: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Archives, eggs, other finders and other ways of writing metadata are its business."""
    install(site)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [group])
    assert entry_points(group=GROUP) == [GROUP]


def test_names_and_places_are_found(site: Path) -> None:
    """An entry point has its distribution, and loads a module or what is in it."""
    import os

    _plain(site)
    first, second = sorted(entry_points(group=GROUP), key=lambda item: item.name)
    assert (first.name, first.value, first.dist.name, first.dist.version) == ("one", "os.path", "Some.Package", "1.2")
    assert first.load() is os.path
    assert second.load() == os.sep


def test_the_installed_packages() -> None:
    """In the environment at hand the same plugins are found."""
    assert _found(entry_points(group=GROUP)) == _found(list(metadata.entry_points(group=GROUP)))
