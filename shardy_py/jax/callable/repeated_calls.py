"""Calls like one before, whose arrays lie where the program wants them: they go to XLA's executable at once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field

from shardy_py.jax.callable.compilation import CompiledBody
from shardy_py.jax.callable.contexts import trace_context
from shardy_py.jax.callable.device_program import DeviceProgram
from shardy_py.jax.callable.dispatch import dispatch_data
from shardy_py.jax.result_types import as_type, is_in_module
from shardy_py.values import define, frozen

if TYPE_CHECKING:
    from shardy_py.jax.calls import CallArguments
    from shardy_py.jax.lowered_call import LoweredCall

_NUMBERS = frozenset((bool, int, float, complex))


@frozen(eq=False)
class RepeatedCall:
    """A compiled program and the trees of its function, for arrays that lie as it wants them.

    Args:
        lowered: The function for the shapes of the call.
        program: The compiled program.
        used: The numbers of the arrays that it takes; None for all.
        out_tree: The tree of the results.
        typed: The numbers and types of the results whose types its module does not say.
    """

    lowered: LoweredCall
    program: CompiledBody
    used: tuple[int, ...] | None
    out_tree: Any
    typed: tuple[tuple[int, Any], ...]

    def run(self, leaves: Sequence[Any]) -> Any:
        """Return the results of the function for the arrays in its arguments."""
        arrays = leaves if self.used is None else [leaves[number] for number in self.used]
        results = self.program(*arrays)
        for number, type_ in self.typed:
            results[number] = as_type(results[number], type_)
        return self.out_tree.unflatten(results)

    def dispatch_data(self, results: Any) -> Any:
        """Return what JAX needs to run the call again; None if it has to be called each time.

        Args:
            results: The results of the call.
        """
        return dispatch_data(self.program, results) if self.used is None else None


@define(eq=False)
class RepeatedCalls:
    """The calls of a function that may come again.

    What a call costs beside its program is then as little as with `jax.jit`: no type or sharding is compared with those
    of the program again, as the key of a call tells them.
    """

    _calls: dict[Hashable, RepeatedCall] = field(factory=dict, init=False)
    _context: Hashable = field(default=None, init=False)
    _array_class: type | None = field(default=None, init=False)
    _latest_key: Hashable = field(default=None, init=False)
    _latest: RepeatedCall | None = field(default=None, init=False)

    def find(self, leaves: Sequence[Any], tree: Any, static: Hashable) -> RepeatedCall | None:
        """Return the program of a call like one before; None if it has to be prepared.

        Args:
            leaves: The arrays among its arguments.
            tree: Their tree.
            static: The arguments that are values of Python to the function.
        """
        if self._latest is None or trace_context() != self._context:
            return None
        key = self._key(leaves, tree, static)
        # To compare a key with one of the same objects is cheaper than to hash it.
        if key == self._latest_key:
            return self._latest
        call = None if key is None else self._calls.get(key)
        if call is not None:
            self._latest_key, self._latest = key, call
        return call

    def add(self, call: CallArguments, lowered: LoweredCall) -> None:
        """Keep the program of a call, unless arrays have to be moved or changed for it."""
        import jax

        program, leaves = lowered.compile(), call.leaves
        signature = program.signature
        if not isinstance(program, DeviceProgram) or signature is None or call.in_tree != signature.in_tree:
            return
        arrays = [leaves[number] for number in signature.used]
        compiled = program.compiled_for(arrays)
        array_class = next((type(leaf) for leaf in leaves if isinstance(leaf, jax.Array)), None)
        if compiled is None or array_class is None:
            return
        context = trace_context()
        if context != self._context:
            self.clear()
        self._array_class, self._context = array_class, context
        key = self._key(leaves, call.in_tree, call.static)
        if key is not None:
            types = enumerate(signature.result_types)
            typed = tuple((number, type_) for number, type_ in types if not is_in_module(type_))
            used = None if len(arrays) == len(leaves) else signature.used
            latest = RepeatedCall(lowered, compiled, used, signature.out_tree, typed)
            self._latest_key, self._latest = key, latest
            self._calls[key] = latest

    def clear(self) -> None:
        """Forget all calls."""
        self._calls.clear()
        self._latest_key = self._latest = None

    def _key(self, leaves: Sequence[Any], tree: Any, static: Hashable) -> Hashable:
        """Return what tells calls in one context apart; None where one has to be prepared each time."""
        key: list[Any] = [tree, static]
        array_class = self._array_class
        for leaf in leaves:
            kind = type(leaf)
            if kind is array_class:
                if leaf.is_deleted():
                    return None
                key += leaf.aval, leaf.sharding, leaf.committed
            elif kind in _NUMBERS:
                key.append(kind)
            else:
                return None
        return tuple(key)
