"""Signatures of JAX's functions: the trees of their arguments and results, and what runs beside their modules."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import field

from shardy_py.jax.result_types import as_type
from shardy_py.jax.sharding_trees import has_names, is_flat, is_prefix, shardings_of_arguments, shardings_of_leaves
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
        arguments: The `jax.stages.ArgInfo` of each leaf of the arguments: its type, and whether it is donated.
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
    arguments: tuple[Any, ...] = field(default=(), repr=False)
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
        """Return given shardings by argument and result of the module.

        They are flat lists, one for each array of the function or of the module, mappings, or trees as `jax.jit` takes
        them, which become flat.

        Raises:
            OptionError: they are trees, and not those of the function.
        """
        positional = self.in_tree.children()[0]
        if isinstance(in_shardings, Mapping):
            in_shardings = self._numbers_behind_tokens(in_shardings)
        elif in_shardings is not None and not has_names(in_shardings):
            is_tree = is_prefix(in_shardings, positional)
            if not is_tree and is_flat(in_shardings, (len(self.used),)):
                flat = list(in_shardings)
            elif not is_tree and is_flat(in_shardings, (self.in_tree.num_leaves,)):
                flat = [in_shardings[number] for number in self.used]
            else:
                leaves = shardings_of_arguments(in_shardings, self.in_tree)
                flat = [leaves[number] for number in self.used]
            in_shardings = self._behind_tokens(flat)
        if isinstance(out_shardings, Mapping) and not is_prefix(out_shardings, self.out_tree):
            out_shardings = self._numbers_behind_tokens(out_shardings)
        elif out_shardings is not None and not has_names(out_shardings):
            is_tree = is_prefix(out_shardings, self.out_tree)
            if not is_tree and is_flat(out_shardings, (self.out_tree.num_leaves,)):
                flat = list(out_shardings)
            else:
                flat = shardings_of_leaves(out_shardings, self.out_tree, "out_shardings")
            out_shardings = self._behind_tokens(flat)
        return in_shardings, out_shardings

    def _behind_tokens(self, shardings: list[Any]) -> list[Any]:
        """Return shardings of arrays as those of the module, in which tokens stand before the arrays."""
        return [None] * self.tokens + shardings

    def _numbers_behind_tokens(self, shardings: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return shardings by number or name, with the numbers of the module."""
        return {
            key + self.tokens if isinstance(key, int) and key >= 0 else key: value for key, value in shardings.items()
        }

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
        arguments=_argument_infos(source),
    )


def _argument_infos(source: Any) -> tuple[Any, ...]:
    """Return the type of each leaf of the arguments, and whether it is donated; an ``Exported`` donates none."""
    import jax

    if hasattr(source, "args_info"):
        return tuple(jax.tree.leaves(source.args_info))
    return tuple(jax.stages.ArgInfo(aval, False) for aval in source.in_avals)


def _devices(details: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the devices of the first mesh that a lowered function has, in its order; None without one."""
    import jax

    names = ("in_shardings", "out_shardings", "intermediate_shardings")
    shardings = [item for name in names for item in jax.tree.leaves(tuple(details.get(name) or ()))]
    meshes = [*(getattr(item, "mesh", None) for item in shardings), details.get("context_mesh")]
    mesh = next((item for item in meshes if isinstance(item, jax.sharding.Mesh) and item.size > 1), None)
    return None if mesh is None else tuple(mesh.devices.flat)


def context_mesh() -> Any:
    """Return the mesh that the caller has set in JAX, or None; JAX is not imported for that."""
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(jax.sharding, "get_abstract_mesh"):
        return None
    mesh = jax.sharding.get_abstract_mesh()
    return None if mesh is None or mesh.empty else mesh
