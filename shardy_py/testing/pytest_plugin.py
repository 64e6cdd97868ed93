"""The plugin for pytest: fixtures and options for the tests of dialects.

It is loaded by the entry point wherever the package is installed, so it imports nothing until a fixture is used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from shardy_py.plugins import Registry

FOLDER = "snapshots"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("shardy", "sharding propagation")
    group.addoption(
        "--shardy-update-snapshots",
        action="store_true",
        default=False,
        help="write the snapshots of the fixture sharding_snapshot anew instead of comparing",
    )
    group.addoption(
        "--shardy-block-plugin",
        action="append",
        default=[],
        metavar="NAME",
        help="leave an installed plugin out of the fixture shardy_registry; may be repeated",
    )


@pytest.fixture(scope="session")
def shardy_plugins() -> Sequence[object]:
    """Plugins that are not installed, for `shardy_registry`; a test suite overrides this fixture."""
    return ()


@pytest.fixture(scope="session")
def shardy_registry(request: pytest.FixtureRequest, shardy_plugins: Sequence[object]) -> Registry:
    """Registry of the installed plugins and those of `shardy_plugins`; a broken plugin is an error."""
    from shardy_py.plugins import Registry
    from shardy_py.plugins.manager import find_entry_points

    installed = {item.value for item in find_entry_points()}
    others = [plugin for plugin in shardy_plugins if getattr(plugin, "__name__", None) not in installed]
    return Registry.from_entry_points(plugins=others, blocked=request.config.getoption("--shardy-block-plugin"))


@pytest.fixture
def sharding_snapshot(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Compare the shardings of a program with a file beside the test.

    ``sharding_snapshot(result)`` compares with ``snapshots/TEST_FILE/TEST.txt``, ``sharding_snapshot(result, "name")``
    with ``TEST-name.txt`` there. With ``--shardy-update-snapshots`` the files are written.
    """
    update = bool(request.config.getoption("--shardy-update-snapshots"))
    folder = request.path.parent / FOLDER / request.path.stem
    stem = _file_name(request.node.name)
    used: set[Path] = set()

    def compare(module: Any, name: str = "") -> None:
        from shardy_py.testing.snapshots import assert_sharding_snapshot

        __tracebackhide__ = True
        path = folder / f"{stem}{'-' + _file_name(name) if name else ''}.txt"
        if path in used:
            raise ValueError(f"two snapshots of one test are called {path.name}: give them names")
        used.add(path)
        assert_sharding_snapshot(module, path, update=update)

    return compare


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Explain why two sharding rules are not equal."""
    if op != "==" or type(left).__name__ != "OpShardingRule" or type(left) is not type(right):
        return None
    from shardy_py.testing.rules import first_difference

    difference = first_difference(right, left)  # type: ignore[arg-type]
    return ["sharding rules differ", f"left:  {left}", f"right: {right}", f"first difference: {difference}"]


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.=-]+", "_", text).strip("_")
