"""Signatures of JAX's functions: the trees of their arguments and results, and what runs beside their modules."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.jax.result_types import as_type
from shardy_py.values import frozen


@frozen(eq=False)
class JaxSignature:
    """The signature of a function of JAX, as the main function of its module has it.

    Args:
        in_tree: The tree of positional and keyword arguments.
        out_tree: The tree of results.
        used: The numbers of the leaves of the arguments that the module keeps, in order.
        result_types: The types of the leaves of the results.
        host_callbacks: The functions of this process that the module calls.
        alive: What has to live as long as these may be called.
        devices: The devices that the function was lowered for, in the order of its mesh; None where that is not known.
        tokens: The number of tokens in front of the arguments and results of the module, for effects in order.
        returns_trees: Whether results are in their tree also where that is one array or a flat tuple or list.
    """

    in_tree: Any
    out_tree: Any
    used: tuple[int, ...]
    result_types: tuple[Any, ...]
    host_callbacks: tuple[Any, ...] = field(default=(), repr=False)
    alive: Any = field(default=None, repr=False)
    devices: tuple[Any, ...] | None = field(default=None, repr=False)
    tokens: int = 0
    returns_trees: bool = False

    def flatten_arguments(self, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any] | None:
        """Return the arguments of a call as those of the main function; None if they have another tree."""
        import jax

        leaves, tree = jax.tree.flatten((tuple(arguments), dict(keywords)))
        return [leaves[number] for number in self.used] if tree == self.in_tree else None

    def typed_results(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the arrays of a run with the types that the results of the function have."""
        return [as_type(array, type_) for array, type_ in zip(arrays, self.result_types, strict=True)]

    def unflatten_results(self, results: Sequence[Any]) -> Any:
        """Return results in the tree that the function returns."""
        import jax

        return jax.tree.unflatten(self.out_tree, results)

    @property
    def returns_a_list(self) -> bool:
        """True if the results are one array, or a flat tuple or list of arrays."""
        import jax

        count = self.out_tree.num_leaves
        flat = [jax.tree.structure(make([0] * count)) for make in (tuple, list)]
        return self.out_tree == jax.tree.structure(0) or self.out_tree in flat

    def flat_shardings(self, in_shardings: Any, out_shardings: Any) -> tuple[Any, Any]:
        """Return given shardings by argument and result of the module; trees, as `jax.jit` takes them, flat.

        Raises:
            OptionError: they are trees, and not those of the function.
        """
        # One sharding is for all arguments, or for all results.
        positional = self.in_tree.children()[0]
        if is_tree(in_shardings) or is_one_sharding(in_shardings) or _has_one_each(in_shardings, positional):
            in_shardings = self.flatten_shardings(in_shardings)
        elif _is_sequence(in_shardings) and len(in_shardings) == self.in_tree.num_leaves:
            in_shardings = self._behind_tokens([in_shardings[number] for number in self.used])
        if (
            is_tree(out_shardings)
            or is_one_sharding(out_shardings)
            or self._has_keys_of_results(out_shardings)
            or _has_one_each(out_shardings, self.out_tree)
        ):
            out_shardings = self.flatten_shardings(out_shardings, of_results=True)
        elif _is_sequence(out_shardings) and len(out_shardings) == self.out_tree.num_leaves:
            out_shardings = self._behind_tokens(list(out_shardings))
        return in_shardings, out_shardings

    def _has_keys_of_results(self, shardings: Any) -> bool:
        """Return whether a mapping has the keys of the dictionary that the function returns."""
        if not isinstance(shardings, Mapping):
            return False
        results = self.unflatten_results(range(self.out_tree.num_leaves))
        return isinstance(results, Mapping) and set(shardings) == set(results)

    def flatten_shardings(self, shardings: Any, *, of_results: bool = False) -> list[Any]:
        """Return shardings in a tree, or in one that stops above the leaves, by argument or result of the module.

        Args:
            shardings: The tree, as ``in_shardings`` or ``out_shardings`` of `jax.jit`; a leaf counts for all below it.
            of_results: Whether it is that of the results.

        Raises:
            OptionError: it is another tree.
        """
        import jax

        tree = self.out_tree if of_results else self.in_tree
        numbered = jax.tree.unflatten(tree, list(range(tree.num_leaves)))
        if not of_results:
            numbered = numbered[0]
        flat: list[Any] = [None] * tree.num_leaves
        _assign(shardings, numbered, flat, "results" if of_results else "arguments")
        return self._behind_tokens(flat if of_results else [flat[number] for number in self.used])

    def _behind_tokens(self, shardings: list[Any]) -> list[Any]:
        """Return shardings of arrays as those of the module, in which tokens stand before the arrays."""
        return [None] * self.tokens + shardings

    def unflatten_leaves(self, values: Sequence[Any], *, of_results: bool = False) -> Any:
        """Return values of arguments or results in their tree; arguments that the module has not have None."""
        import jax

        if of_results:
            return jax.tree.unflatten(self.out_tree, values)
        leaves: list[Any] = [None] * self.in_tree.num_leaves
        for number, value in zip(self.used, values, strict=True):
            leaves[number] = value
        arguments, keywords = jax.tree.unflatten(self.in_tree, leaves)
        return (arguments, keywords) if keywords else arguments


def signature_of_stage(source: Any, arguments: int) -> JaxSignature | None:
    """Return the signature of a ``Lowered`` or an ``Exported``; None for anything else, or where it is not known.

    Args:
        source: The program.
        arguments: The number of arguments of its main function.
    """
    import jax

    in_tree, out_tree = getattr(source, "in_tree", None), getattr(source, "out_tree", None)
    if in_tree is None or out_tree is None:
        return None
    details = getattr(getattr(source, "_lowering", None), "compile_args", None) or {}
    used = getattr(source, "module_kept_var_idx", None)
    if used is None:
        used = details.get("kept_var_idx", range(in_tree.num_leaves))
    used = tuple(sorted(used))
    tokens = len(details.get("ordered_effects") or ())
    if len(used) + tokens != arguments or any(number >= in_tree.num_leaves for number in used):
        # Such as constants that JAX makes arguments of.
        return None
    callbacks = tuple(details.get("host_callbacks") or ())
    types = jax.tree.leaves(getattr(source, "out_avals", None) or details.get("global_out_avals"))
    if len(types) != out_tree.num_leaves:
        types = jax.tree.leaves(source.out_info)
    return JaxSignature(
        in_tree,
        out_tree,
        used,
        tuple(types),
        callbacks,
        alive=details.get("keepalive"),
        devices=_devices(details),
        tokens=tokens,
    )


def _devices(details: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the devices of the first mesh that a lowered function has, in its order; None without one."""
    import jax

    names = ("in_shardings", "out_shardings", "intermediate_shardings")
    shardings = [item for name in names for item in jax.tree.leaves(tuple(details.get(name) or ()))]
    meshes = [*(getattr(item, "mesh", None) for item in shardings), details.get("context_mesh")]
    mesh = next((item for item in meshes if isinstance(item, jax.sharding.Mesh) and item.size > 1), None)
    return None if mesh is None else tuple(mesh.devices.flat)


def _is_sequence(shardings: Any) -> bool:
    """Return whether this is a tuple or list, and not one sharding as a tuple of names of axes."""
    return isinstance(shardings, (tuple, list)) and not is_leaf(shardings)


def _has_one_each(shardings: Any, tree: Any) -> bool:
    """Return whether a sequence has one entry for each entry of the tuple or list that a tree is."""
    node = tree.node_data()
    return (
        node is not None
        and node[0] in (tuple, list)
        and _is_sequence(shardings)
        and len(shardings) == len(tree.children())
    )


def is_tree(shardings: Any) -> bool:
    """Return whether a sequence of shardings has trees in it: dictionaries, or tuples and lists of shardings."""
    if not _is_sequence(shardings):
        return False
    return any(isinstance(item, (Mapping, list)) or _is_sequence(item) for item in shardings)


def is_one_sharding(sharding: Any) -> bool:
    """Return whether this is a ``PartitionSpec`` or a ``NamedSharding`` of JAX, not a sequence of shardings."""
    return sharding is not None and not isinstance(sharding, (str, tuple, list, Mapping)) and is_leaf(sharding)


def context_mesh() -> Any:
    """Return the mesh that the caller has set in JAX, or None; JAX is not imported for that."""
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(jax.sharding, "get_abstract_mesh"):
        return None
    mesh = jax.sharding.get_abstract_mesh()
    return None if mesh is None or mesh.empty else mesh


def is_leaf(item: Any) -> bool:
    """Return whether something is one sharding: also None, a text, and a tuple of names of axes."""
    if item is None or isinstance(item, str) or hasattr(item, "spec") or hasattr(item, "dim_shardings"):
        return True
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(item, jax.sharding.PartitionSpec):
        return True
    names = isinstance(item, tuple) and all(
        part is None or isinstance(part, str) or (isinstance(part, tuple) and all(isinstance(x, str) for x in part))
        for part in item
    )
    return bool(names and any(isinstance(part, (str, tuple)) for part in item))


def _assign(shardings: Any, numbered: Any, flat: list[Any], noun: str) -> None:
    """Enter a sharding for each number in a tree."""
    import jax

    if isinstance(numbered, int) or is_leaf(shardings):
        for number in jax.tree.leaves(numbered):
            flat[number] = shardings
        return
    # One level of both, whatever kind of node it is.
    levels = [
        jax.tree_util.tree_flatten(item, is_leaf=lambda part, item=item: part is not item)
        for item in (shardings, numbered)
    ]
    (parts, structure), (others, expected) = levels
    if structure != expected and not (
        len(parts) == len(others) and isinstance(shardings, (list, tuple)) and isinstance(numbered, (list, tuple))
    ):
        message = f"the tree of shardings of the {noun} has {structure} where the function has {expected}"
        hint = "give one sharding in the place of all below it, or the same keys"
        raise OptionError(Diagnostic("invalid-sharding-tree", message, hint=hint))
    for part, other in zip(parts, others, strict=True):
        _assign(part, other, flat, noun)
