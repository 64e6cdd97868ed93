"""Compilation in a process of its own first, where XLA is known to end the process for some programs."""

from __future__ import annotations

from collections.abc import Sequence

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.attributes import DenseElements
from shardy_py.ir.graph.op_names import CONSTRAINT
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.graph.walk import ops_named
from shardy_py.jax.form.faulty_dims import ending_dims
from shardy_py.sharding.tensor import TensorSharding
from shardy_py.support.processes.child import ChildDied, ChildTimeout, ask_once, find_cause, name_exit

_CONVOLUTION = "stablehlo.convolution"
_RISKY = (_CONVOLUTION, "stablehlo.pad", "stablehlo.reduce_window")
"""Ops for which XLA's partitioner fails a check of its own where they are sharded along some dimensions."""
SECONDS = 3600.0
"""The time that the compilation may take."""
_WORKER = "shardy_py.jax.probe_worker"


def probe(program: Program, bytecode: bytes, count: int, faults: Sequence[Diagnostic] = ()) -> None:
    """Compile a program in another process, if it has an op that may end the process.

    Args:
        program: The program in the form for XLA.
        bytecode: The same as MLIR's bytecode.
        count: The number of devices.
        faults: The known faults that the program meets all the same.

    Raises:
        UnsupportedError: that process ended by a signal, or took too long; an error of XLA is left to the process that
            runs the program.
    """
    risky = [op for op in ops_named(program, *_RISKY) if _may_end_xla(program, op)] if count > 1 else []
    if not risky and not faults:
        return
    try:
        ask_once(_WORKER, b"%d\n" % count + bytecode, seconds=SECONDS)
    except ChildTimeout as error:
        raise UnsupportedError(Diagnostic("timeout", f"XLA compiles the program for too long: {error}")) from None
    except ChildDied as error:
        if error.code < 0:
            raise _refuse(error, risky, faults) from None


def _refuse(end: ChildDied, risky: Sequence[Op], faults: Sequence[Diagnostic]) -> UnsupportedError:
    """Return the error that says what ended the process, and which ops may have done so."""
    cause = find_cause(end.stderr) or f"it ended with {name_exit(end.code)}"
    if not risky:
        first = faults[0]
        message = f"XLA would end the process: {cause}; {first.message}"
        return UnsupportedError(Diagnostic("ends-xla", message, first.location, first.op, first.hint))
    names = " or ".join(dict.fromkeys(op.name for op in risky))
    hint = f"replicate the operands of the {names} along the dimensions of its window or padding"
    message = f"XLA would end the process: {cause}"
    return UnsupportedError(Diagnostic("ends-xla", message, risky[0].location, risky[0].name, hint))


def _may_end_xla(program: Program, op: Op) -> bool:
    if op.name == _CONVOLUTION or _cuts_off(op):
        return _is_sharded(program, op)
    dims = ending_dims(op)
    return bool(dims) and _is_open_along(program, op, dims)


def _cuts_off(op: Op) -> bool:
    """Return whether the windows of a ``reduce_window`` leave out elements at an end."""
    padding = op.attributes.get("padding")
    return isinstance(padding, DenseElements) and min(padding.values, default=0) < 0


def _is_open_along(program: Program, op: Op, dims: Sequence[int]) -> bool:
    """Return whether XLA may shard an op along a dimension, as no constraint around it says that it is whole."""
    operand = op.operands[0]
    constraint = next((user for user in op.results[0].users if user.name == CONSTRAINT), None)
    shardings = (_constraint(operand.defining_op) or program.shardings.get(operand.id), _constraint(constraint))
    return any(item is None or any(item.dim_shardings[dim].axes for dim in dims) for item in shardings)


def _constraint(op: Op | None) -> TensorSharding | None:
    return op.attributes.get("sharding") if op is not None and op.name == CONSTRAINT else None


def _is_sharded(program: Program, op: Op) -> bool:
    """Return whether a constraint on an operand or the result has axes."""
    around = [value.defining_op for value in op.operands] + [user for value in op.results for user in value.users]
    shardings = [item.attributes.get("sharding") for item in around if item is not None]
    arguments = [program.shardings.get(value.id) for value in op.operands]
    return any(not item.empty_axes for item in (*shardings, *arguments) if item is not None)
