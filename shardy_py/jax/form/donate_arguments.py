"""Give donated arguments and the results in their place the same size on every device."""

from __future__ import annotations

from typing import Any, ClassVar

from shardy_py.ir.graph.program import Op, Program, Value
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.values import frozen

_ALIAS, _DONOR = "tf.aliasing_output", "jax.buffer_donor"


@frozen
class DonateArgumentsPass:
    """Turn ``tf.aliasing_output`` into ``jax.buffer_donor`` where the result cannot take the place of the argument.

    Propagation may have sharded the two differently, where XLA refuses the module; as a donor the argument is free for
    whatever fits. The same goes for a second argument in the place of one result.
    """

    name: ClassVar[str] = "xla-donate-arguments"

    def run(self, program: Program, context: PassContext) -> None:
        """Look at the arguments of the main function."""
        main = program.functions.get("main")
        dictionaries = main.attributes.get("arg_attrs") if main is not None else None
        if main is None or not dictionaries:
            return
        aliased: set[int] = set()
        changed = []
        for value, item in zip(main.regions[0].blocks[0].arguments, dictionaries, strict=True):
            result = item.get(_ALIAS)
            if result is not None and (result in aliased or not _fits(program, main, value, result)):
                item = {**{name: part for name, part in item.items() if name != _ALIAS}, _DONOR: True}
            elif result is not None:
                aliased.add(result)
            changed.append(item)
        main.attributes["arg_attrs"] = tuple(changed)


def donated_arguments(main: Op) -> frozenset[int]:
    """Return the numbers of the arguments of a function that are donated."""
    dictionaries = main.attributes.get("arg_attrs") or ()
    return frozenset(number for number, item in enumerate(dictionaries) if _ALIAS in item or item.get(_DONOR))


def _fits(program: Program, main: Op, argument: Value, index: Any) -> bool:
    if not 0 <= index < len(main.function_results):
        return False
    result = main.function_results[index]
    return argument.type == result.type and _local_shape(program, argument) == _local_shape(program, result)


def _local_shape(program: Program, value: Value) -> object:
    sharding = program.shardings.get(value.id)
    mesh = resolve_mesh(sharding.mesh, program.meshes) if sharding is not None else None
    if sharding is None or mesh is None or not isinstance(value.type, TensorType):
        return value.type
    return sharding.local_shape(value.type.shape, mesh)
