"""Trees of shardings, as `jax.jit` takes them: an entry counts for all that stands below it in the function's tree."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve

from shardy_py.api.specs import is_text
from shardy_py.errors import Diagnostic, OptionError, with_article
from shardy_py.guards.error_texts import location_of

_CODE = "invalid-sharding-tree"
_PREFIX = "give one sharding in the place of all below it, or a tree with the same keys and lengths"


def is_leaf(item: Any) -> bool:
    """Return whether something is one sharding: also None, a text, and a tuple of names of axes."""
    if item is None or isinstance(item, str) or hasattr(item, "spec") or hasattr(item, "dim_shardings"):
        return True
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(item, (jax.sharding.PartitionSpec, jax.sharding.Sharding)):
        return True
    return isinstance(item, tuple) and any(item) and all(map(_is_entry, item))


def _is_entry(part: Any) -> bool:
    """Return whether this is what a spec says of one dimension: a name of an axis, a tuple of them, or None."""
    if isinstance(part, tuple):
        return all(isinstance(name, str) for name in part)
    return part is None or (isinstance(part, str) and not is_text(part))


def has_specs(*trees: Any) -> bool:
    """Return whether a sharding in some trees is a spec that brings no mesh along."""
    import jax

    leaves = jax.tree.leaves([as_entries(tree) for tree in trees], is_leaf=is_leaf)
    return any(leaf is not None and not hasattr(leaf, "mesh") for leaf in leaves)


def is_decided(sharding: Any) -> bool:
    """Return whether a sharding is given, and leaves no dimension for propagation to decide."""
    import jax

    spec = getattr(sharding, "spec", sharding)
    if isinstance(spec, jax.sharding.PartitionSpec):
        return jax.sharding.PartitionSpec.UNCONSTRAINED not in tuple(spec)
    # In Shardy's notation a dimension that may be sharded further has a question mark.
    return spec is not None and "?" not in str(spec)


def is_sequence(shardings: Any) -> bool:
    """Return whether this is a tuple or list, and not one sharding as a tuple of names of axes."""
    return isinstance(shardings, (tuple, list)) and not is_leaf(shardings)


def is_flat(shardings: Any, counts: Sequence[int]) -> bool:
    """Return whether this is a sequence of shardings, with no tree among them, of one of some lengths."""
    entries = as_entries(shardings)
    return is_sequence(entries) and len(entries) in counts and all(map(is_leaf, entries))


def is_prefix(shardings: Any, tree: Any) -> bool:
    """Return whether shardings have one entry for each entry of a tree that is a tuple or list, or have its keys."""
    results = tree.unflatten(range(tree.num_leaves))
    if isinstance(shardings, Mapping):
        return isinstance(results, Mapping) and results.keys() == shardings.keys()
    entries = as_entries(shardings)
    return is_sequence(entries) and isinstance(results, (tuple, list)) and len(entries) == len(results)


def shardings_of_leaves(shardings: Any, tree: Any, option: str) -> list[Any]:
    """Return the sharding of each leaf of a tree.

    Args:
        shardings: The shardings, in a tree that may stop above the leaves.
        tree: The tree of the arguments or results.
        option: The option that they are given by.

    Raises:
        OptionError: it is another tree.
    """
    flat: list[Any] = [None] * tree.num_leaves
    _assign(as_entries(shardings), tree.unflatten(range(tree.num_leaves)), flat, option)
    return flat


def has_names(shardings: Any) -> bool:
    """Return whether a tuple or list has names of axes where shardings should stand."""
    is_plain = type(shardings) in (tuple, list)
    return is_plain and any(isinstance(part, str) and not is_text(part) for part in shardings)


def as_entries(shardings: Any) -> Any:
    """Return a tuple of plain specs, which would be one spec with a tuple of names for each dimension, as a list."""
    is_specs = type(shardings) is tuple and is_leaf(shardings) and not has_names(shardings)
    return list(shardings) if is_specs else shardings


def shardings_of_arguments(in_shardings: Any, in_tree: Any) -> list[Any]:
    """Return the sharding of each leaf of the arguments; one sharding is for all, a tree for the positional ones.

    Args:
        in_shardings: The shardings.
        in_tree: The tree of positional and keyword arguments.

    Raises:
        OptionError: they are another tree.
    """
    positional, keywords = in_tree.children()
    count = len(positional.children())
    entries = as_entries(in_shardings)
    if is_leaf(entries):
        return [entries] * in_tree.num_leaves
    if is_sequence(entries) and len(entries) != count:
        message = f"in_shardings has {len(entries)} entries where the call has {count} positional arguments"
        hint = "give one for each of them, None to leave it open, or one sharding for all"
        by_name = "; arguments by keyword are given in a mapping from names to shardings" if keywords.num_leaves else ""
        raise OptionError(Diagnostic(_CODE, message, hint=hint + by_name))
    return shardings_of_leaves(entries, positional, "in_shardings") + [None] * keywords.num_leaves


def refuse_other_trees(
    function: Callable[..., Any], in_shardings: Any, in_tree: Any, out_shardings: Any, out_tree: Any
) -> None:
    """Check that shardings are trees that `jax.jit` takes, or mappings from names or numbers.

    Args:
        function: The function, which errors name.
        in_shardings: Those of the arguments.
        in_tree: The tree of positional and keyword arguments.
        out_shardings: Those of the results.
        out_tree: The tree of the results.

    Raises:
        OptionError: they are not.
    """
    try:
        if in_shardings is not None and not isinstance(in_shardings, Mapping) and not has_names(in_shardings):
            shardings_of_arguments(in_shardings, in_tree)
        if out_shardings is not None and not has_names(out_shardings) and not _has_other_keys(out_shardings, out_tree):
            shardings_of_leaves(out_shardings, out_tree, "out_shardings")
    except OptionError as error:
        location = location_of(function)
        raise OptionError(*(evolve(item, location=location) for item in error.diagnostics)) from None


def _has_other_keys(shardings: Any, tree: Any) -> bool:
    """Return whether shardings are a mapping from names or numbers of results, and not from keys of a dictionary."""
    results = tree.unflatten(range(tree.num_leaves))
    if not isinstance(shardings, Mapping):
        return False
    return not isinstance(results, Mapping) or results.keys().isdisjoint(shardings)


def _assign(shardings: Any, numbered: Any, flat: list[Any], path: str) -> None:
    """Enter a sharding for each number in a tree."""
    import jax

    if is_leaf(shardings):
        for number in jax.tree.leaves(numbered):
            flat[number] = shardings
        return
    pairs = [_children(shardings), _children(numbered)]
    (parts, structure), (others, expected) = pairs
    are_sequences = isinstance(shardings, (list, tuple)) and isinstance(numbered, (list, tuple))
    if isinstance(numbered, int) or (structure != expected and not (are_sequences and len(parts) == len(others))):
        given, wanted = _described(shardings), _described(numbered)
        wanted = wanted if wanted != given else "one with other static fields"
        message = f"{path} is {given} where the function has {wanted}"
        raise OptionError(Diagnostic(_CODE, message, hint=_PREFIX))
    for (key, part), (_, other) in zip(parts, others, strict=True):
        _assign(part, other, flat, path + jax.tree_util.keystr(key))


def _children(node: Any) -> Any:
    """Return what stands one level below a node of a tree, with its keys, and the structure of the node."""
    import jax

    return jax.tree_util.tree_flatten_with_path(node, is_leaf=lambda part: part is not node)


def _described(node: Any) -> str:
    if isinstance(node, int):
        return "one array"
    if node is None:
        return "nothing"
    kind = with_article(type(node).__name__)
    if isinstance(node, Mapping):
        return f"{kind} with the keys {', '.join(map(repr, node)) or 'none'}"
    return f"{kind} of length {len(node)}" if isinstance(node, (list, tuple)) else kind
