"""The glossary has the nouns of which the names of public classes are made."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re

import pytest

import shardy_py
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
TERMS = [row.lower() for row in re.findall(r"^\| (.+?) \|", PAGE, re.MULTILINE)]
WORDS = {word for term in TERMS for word in re.findall(r"[a-z]+", term)}
MODIFIERS = {
    *(
        "binary",
        "bounded",
        "combined",
        "compiled",
        "counted",
        "dense",
        "folds",
        "info",
        "into",
        "local",
        "no",
        "own",
        "sharded",
        "uncovered",
        "parse",
        "per",
    ),
    *("raw", "shardable", "sub", "transform", "unsupported"),
}
"""Words of names that are no nouns, or say nothing of their own."""
PRODUCTS = {"hlo", "jax", "mlir", "onnx", "shardy", "torch", "xdsl", "xla"}


def _public_classes() -> dict[str, str]:
    """Return the public classes of the package and of its packages, each with a module that exports it."""
    packages = [item.name for item in pkgutil.walk_packages(shardy_py.__path__, "shardy_py.") if item.ispkg]
    packages = [name for name in packages if not name.startswith("shardy_py.oracle")]
    collected = {}
    for name in ("shardy_py", *packages, "shardy_py.cost.session"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        exported = getattr(module, "__all__", [item for item in vars(module) if item == "Session"])
        collected |= {item: name for item in exported if inspect.isclass(getattr(module, item))}
    return collected


def test_every_noun_of_a_public_name_is_there() -> None:
    """Each word of the name of a public class is part of a term, in the singular or the plural."""
    missing = {}
    for name, module in _public_classes().items():
        words = {word.lower() for word in re.findall(r"[A-Z][a-z0-9]+|[A-Z]+(?![a-z])", name)} - MODIFIERS - PRODUCTS
        unknown = {word for word in words if not WORDS & {word, f"{word}s", word.removesuffix("s")}}
        if unknown:
            missing[f"{module}.{name}"] = unknown
    assert missing == {}


@pytest.mark.parametrize("word", ["slot", "step", "problem", "schedule", "session"])
def test_the_words_of_the_engine_are_there(word: str) -> None:
    """The parts of a compiled program have a row of their own."""
    assert word in TERMS


def test_no_word_has_two_rows() -> None:
    """Each term is explained once."""
    terms = [term for row in TERMS for term in row.split(", ") if set(row) != {"-"} and term not in ("word", "---")]
    assert sorted(terms) == sorted(set(terms))
