"""Compiled code means what its source means, whatever the accesses remember."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shardy_py.support.identity import identity
from tests.unit.compiled import accesses as source

pytest.importorskip("Cython")
pytest.importorskip("setuptools")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")]
MANY = 20
"""More accesses than a place makes before it learns nothing more."""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The compiled form of `accesses`."""
    from compiled.build import build

    root = tmp_path_factory.mktemp("compiled")
    # Under its name, which errors say.
    path = f"{source.__name__.replace('.', '/')}.py"
    (root / path).parent.mkdir(parents=True)
    shutil.copy2(Path(source.__file__), root / path)
    for package in (root / path).relative_to(root).parents[:-1]:
        (root / package / "__init__.py").touch()
    (made_file,) = build(root, [path])
    spec = importlib.util.spec_from_file_location(source.__name__, made_file)
    assert spec is not None
    assert spec.loader is not None
    compiled_module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compiled_module)
    return compiled_module


def outcome(function: Callable[..., Any], *arguments: Any) -> object:
    """Return what a call returns, or the class of its error with what it says."""
    try:
        return function(*arguments)
    except Exception as error:
        return type(error), str(error)


def test_it_is_compiled(module: ModuleType) -> None:
    """The module under test is an extension module."""
    assert Path(str(module.__file__)).suffix != ".py"


def _objects(module: ModuleType) -> list[Any]:
    empty = module.make(module.Slotted)
    kinds = [module.Slotted(1), module.Derived(2), module.Other(3), module.Open(), module.Computed(), module.Dynamic()]
    return [*kinds, empty, None, 7, []]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("access", [("read",), ("call", 5)], ids=lambda access: access[0])
def test_attributes_of_objects_of_many_kinds(module: ModuleType, access: tuple[Any, ...], order: int) -> None:
    """A place that meets slots, properties, attributes of classes, dynamic ones and none gives each object its own."""
    name, *arguments = access
    for _ in range(MANY):
        got, expected = (
            [outcome(getattr(where, name), value, *arguments) for value in _objects(where)[::order]]
            for where in (module, source)
        )
        assert got == expected


@pytest.mark.parametrize("kind", ["Slotted", "Derived", "Other", "Open", "Computed"])
def test_writing(module: ModuleType, kind: str) -> None:
    """What is written is read again, and what refuses it says the same as in Python."""
    for number in range(MANY):
        ours, theirs = (where.make(getattr(where, kind)) for where in (module, source))
        assert outcome(module.write, ours, number) == outcome(source.write, theirs, number)
        assert outcome(module.read, ours) == outcome(source.read, theirs)


def test_a_class_that_changes(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place forgets what it knew of a class when the class changes."""
    value = module.Slotted(1)
    assert [module.read(value), module.call(value, 2)] == [1, 3]
    with monkeypatch.context() as patch:
        patch.setattr(module.Slotted, "a", property(lambda self: "new"))
        patch.setattr(module.Slotted, "plus", lambda self, number: -number)
        assert [module.read(value), module.call(value, 2)] == ["new", -2]
    assert [module.read(value), module.call(value, 2)] == [1, 3]


def test_references_are_counted(module: ModuleType) -> None:
    """Reading, writing and making keep as many references as they return or replace."""
    probe = object()
    before = sys.getrefcount(probe)
    value = module.Slotted(None)
    container = [None]
    for _ in range(100):
        module.write(value, probe)
        module.read(value)
        module.set_item(container, 0, probe)
        module.item(container, 0)
    assert sys.getrefcount(probe) == before + 2
    module.write(value, None)
    module.set_item(container, 0, None)
    assert sys.getrefcount(probe) == before


CONTAINERS: list[Any] = [
    [1, 2, 3],
    (1, 2, 3),
    {1: "one", "k": "text", None: 0},
    source.Counting({1: "one"}),
    bytearray(b"\x01\x02\xff"),
    b"\x01\x02\xff",
    "text",
    range(3),
    None,
]
KEYS: list[Any] = [0, 1, 2, 3, -1, -3, -4, 2**70, -(2**70), True, "k", None, slice(1), 1.0, ()]


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda value: type(value).__name__)
def test_items(module: ModuleType, container: Any) -> None:
    """Items, errors and missing keys are those of Python for each kind of container and key."""
    for key in KEYS:
        assert outcome(module.item, container, key) == outcome(source.item, container, key), key


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda value: type(value).__name__)
def test_setting_items(module: ModuleType, container: Any) -> None:
    """Containers are the same after an item was set, and refuse the same."""
    for key in KEYS:
        for value in (0, 255, 256, -1, 2**70, "v"):
            ours, theirs = (_copy(container), _copy(container))
            got = outcome(module.set_item, ours, key, value)
            assert got == outcome(source.set_item, theirs, key, value), (key, value)
            assert ours == theirs, (key, value)


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, list | dict | bytearray) else value


VALUES: list[Any] = [
    0,
    1,
    -1,
    2**30,
    2**62,
    2**63,
    -(2**64),
    True,
    False,
    None,
    0.5,
    float("nan"),
    "",
    "a",
    [],
    [0],
    (),
    {},
]


def test_comparisons_lengths_and_truth(module: ModuleType) -> None:
    """Values of every kind compare, count and are true as in Python."""
    for left in VALUES:
        assert module.truth(left) is source.truth(left)
        assert outcome(module.size, left) == outcome(source.size, left)
        for right in VALUES:
            for name in ("less", "same"):
                got = outcome(getattr(module, name), left, right)
                assert got == outcome(getattr(source, name), left, right), (name, left, right)


def test_identities(module: ModuleType) -> None:
    """The identity of an object is one number in compiled code and outside."""
    for value in (object(), 1, "a", module):
        assert module.number_of(value) == source.number_of(value) == identity(value)


def test_recursion_ends(module: ModuleType) -> None:
    """A recursion without end is an error, not the end of the process."""
    for descend in (lambda: module.descend(0), module.Endless().descend):
        with pytest.raises(RecursionError):
            descend()
