"""Properties of a compiled program by the names of `jax.stages.Compiled`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardy_py.jax.arguments import ArrayType
    from shardy_py.jax.signature import JaxSignature


class CompiledStage:
    """The questions that `jax.stages.Compiled` answers, with the same names and meanings.

    A program that is not a function of JAX takes its arrays by position, and returns a list of them.
    """

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def signature(self) -> JaxSignature | None: ...  # noqa: D102

        @property
        def in_types(self) -> tuple[ArrayType, ...]: ...  # noqa: D102

        @property
        def out_types(self) -> tuple[ArrayType, ...]: ...  # noqa: D102

        @property
        def in_shardings(self) -> tuple[Any, ...]: ...  # noqa: D102

        @property
        def out_shardings(self) -> tuple[Any, ...]: ...  # noqa: D102

        @property
        def donated(self) -> frozenset[int]: ...  # noqa: D102

        @property
        def executable(self) -> Any: ...  # noqa: D102

    @property
    def in_tree(self) -> Any:
        """The tree of the positional arguments and those by keyword."""
        import jax

        return jax.tree.structure((self.in_types, {})) if self.signature is None else self.signature.in_tree

    @property
    def out_tree(self) -> Any:
        """The tree of the results."""
        import jax

        return jax.tree.structure(list(self.out_types)) if self.signature is None else self.signature.out_tree

    @property
    def args_info(self) -> Any:
        """A `jax.stages.ArgInfo` for each argument, in their tree: its type, and whether it is donated."""
        return self.in_tree.unflatten(self._argument_infos)

    @property
    def in_avals(self) -> Any:
        """The type of each argument, in their tree."""
        return self.in_tree.unflatten([item._aval for item in self._argument_infos])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The numbers of the donated arguments, counted along the leaves of their tree."""
        return tuple(number for number, item in enumerate(self._argument_infos) if item.donated)

    @property
    def out_info(self) -> Any:
        """A `jax.ShapeDtypeStruct` with its sharding for each result, in their tree."""
        import jax

        types = self.out_types if self.signature is None else self.signature.result_types
        pairs = zip(types, self._result_shardings, strict=True)
        return self.out_tree.unflatten(
            [jax.ShapeDtypeStruct(type_.shape, type_.dtype, sharding=sharding) for type_, sharding in pairs]
        )

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument, in their tree; None for those that the program does not use."""
        signature = self.signature
        if signature is None:
            return self.in_tree.unflatten(self.in_shardings)
        shardings: list[Any] = [None] * self.in_tree.num_leaves
        for number, sharding in zip(signature.used, self.in_shardings, strict=True):
            shardings[number] = sharding_of_type(sharding, signature.arguments[number])
        return self.in_tree.unflatten(shardings)

    @property
    def output_shardings(self) -> Any:
        """The sharding of each result, in their tree."""
        return self.out_tree.unflatten(self._result_shardings)

    def as_text(self) -> str:
        """Return the text of what XLA compiled, with its collectives."""
        return "\n\n".join(module.to_string() for module in self.executable.hlo_modules())

    def cost_analysis(self) -> Any:
        """Return what XLA's own model of costs says of the program on one device; see `shardy_py.Result.cost` for ours.

        None where the backend has none.
        """
        return _answer(self.executable, "cost_analysis")

    def memory_analysis(self) -> Any:
        """Return the memory that XLA plans for the program on one device; None where the backend does not say."""
        return _answer(self.executable, "get_compiled_memory_stats")

    def runtime_executable(self) -> Any:
        """Return XLA's loaded executable."""
        return self.executable

    @property
    def _argument_infos(self) -> Sequence[Any]:
        import jax

        if self.signature is not None:
            return self.signature.arguments
        types = enumerate(self.in_types)
        return [
            jax.stages.ArgInfo(jax.core.ShapedArray(type_.shape, type_.dtype), number in self.donated)
            for number, type_ in types
        ]

    @property
    def _result_shardings(self) -> Sequence[Any]:
        if self.signature is None:
            return self.out_shardings
        pairs = zip(self.out_shardings, self.signature.result_types, strict=True)
        return [sharding_of_type(sharding, type_) for sharding, type_ in pairs]


def sharding_of_type(sharding: Any, type_: Any) -> Any:
    """Return the sharding of an array of some type, for that of the numbers that its elements consist of.

    Args:
        sharding: A `jax.sharding.NamedSharding`; that of keys of `jax.random` has dimensions for their numbers.
        type_: The type, with ``shape``.
    """
    import jax

    rank = len(type_.shape)
    if len(sharding.spec) <= rank:
        return sharding
    spec = jax.sharding.PartitionSpec(*sharding.spec[:rank])
    return jax.sharding.NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)


def _answer(executable: Any, question: str) -> Any:
    """Return what an executable says, None where its backend does not have the answer; as `jax.stages.Compiled`."""
    import jax

    try:
        return getattr(executable, question)()
    except jax.errors.JaxRuntimeError as error:
        if str(error).startswith("UNIMPLEMENTED"):
            return None
        raise
