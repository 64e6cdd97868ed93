"""Guarded costs of plugins: each answer has the promised type, or is an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any

from shardy_py.guards.error_texts import shown
from shardy_py.guards.guard import Check, Guard, InvalidAnswer, as_boolean, bounded_list
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import static_shape
from shardy_py.plugins.definition_checks import check_cost, makes_cost
from shardy_py.plugins.guarded_interfaces import checked_items, guard_object

if TYPE_CHECKING:
    from shardy_py.ir.interfaces.costs import CostOpInterface, OpWork, OwnCollective, Part, Window


def guard_cost(cost: Any, *, owner: str, location: str = "") -> Callable[[Op], CostOpInterface]:
    """Return a function that returns the cost behind the guard; the cost is made when the first op asks for it."""
    guarded: list[CostOpInterface] = []

    def cost_of(op: Op) -> CostOpInterface:
        if not guarded:
            from shardy_py.ir.interfaces.costs import CostOpInterface

            maker = Guard(cost, "cost", owner, code="invalid-cost", location=location)
            answers = maker.call(check=_checked_cost, op=op) if makes_cost(cost) else cost
            guard = Guard(answers, "", owner, code="cost", location=location)
            guarded.append(guard_object(answers, CostOpInterface, _COST, guard))
        return guarded[0]

    return cost_of


def _checked_cost(answer: Any, op: Op) -> Any:
    if answer is None or makes_cost(answer):
        raise InvalidAnswer(f"returned {shown(answer)}, not a cost", "return an object such as BranchCost()")
    check_cost(answer, op=op.name)
    return answer


def _flops(answer: Any, op: Op) -> float | None:
    if answer is None:
        return None
    if not _is_amount(answer):
        hint = "return a number of operations, or None to derive it from the rule"
        raise InvalidAnswer(f"returned {shown(answer)}, not a number that is finite and at least 0", hint)
    return answer


def _runs(answer: Any, op: Op) -> tuple[float | None, ...]:
    hint = "return one number for each region, None where it is not known"
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        raise InvalidAnswer(f"returned {shown(answer)}, not a list of numbers", hint)
    runs = tuple(bounded_list(answer))
    if len(runs) != len(op.regions):
        raise InvalidAnswer(f"returned {len(runs)} numbers for {len(op.regions)} regions", hint)
    for number in runs:
        if number is not None and not _is_amount(number):
            raise InvalidAnswer(f"gives {shown(number)}, not a number that is finite and at least 0", hint)
    return runs


def _work(answer: Any, op: Op) -> OpWork | None:
    if answer is None:
        return None
    from shardy_py.ir.interfaces.costs import OpWork

    if not isinstance(answer, OpWork):
        raise InvalidAnswer(f"returned {shown(answer)}, not an OpWork or None")
    read, written = answer.reads.values(), answer.writes.values()
    amounts = (answer.flops, answer.transcendentals, answer.temporary_bytes, *read, *written)
    wrong = next((number for number in amounts if not _is_amount(number)), None)
    if wrong is not None:
        raise InvalidAnswer(f"gives {shown(wrong)}, not a number that is finite and at least 0")
    return answer


def _windows(answer: Any, op: Op) -> tuple[Window, ...]:
    from shardy_py.ir.interfaces.costs import Window

    return tuple(checked_items(answer, Window, "Window"))


def _dims(answer: Any, op: Op) -> tuple[int, ...]:
    dims = tuple(answer) if isinstance(answer, Iterable) else (answer,)
    rank = len((static_shape(op.results[0].type) or ()) if op.results else ())
    if not all(isinstance(dim, int) and not isinstance(dim, bool) and 0 <= dim < rank for dim in dims):
        raise InvalidAnswer(f"returned {shown(answer)}, not dimensions of the result, which has {rank}")
    return dims


def _equal_operand(answer: Any, op: Op) -> int | None:
    if answer is None:
        return None
    if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer < len(op.operands):
        raise InvalidAnswer(f"returned {shown(answer)}, not the number of an operand or None")
    return answer


def _operand_numbers(answer: Any, op: Op) -> tuple[int, ...]:
    return _library_operands(answer, op) or ()


def _library_operands(answer: Any, op: Op) -> tuple[int, ...] | None:
    if answer is None:
        return None
    operands = tuple(answer)
    if not all(isinstance(number, int) and 0 <= number < len(op.operands) for number in operands):
        raise InvalidAnswer(f"returned {shown(answer)}, not numbers of operands or None")
    return operands


def _parts(answer: Any, op: Op) -> tuple[Part | None, ...]:
    hint = "return a name and the numbers of operands for each result, or None for it"
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        raise InvalidAnswer(f"returned {shown(answer)}, not a list of computations", hint)
    parts = tuple(bounded_list(answer))
    if parts and len(parts) != len(op.results):
        raise InvalidAnswer(f"returned {len(parts)} computations for {len(op.results)} results", hint)
    for part in parts:
        if part is not None and not _is_part(part, op):
            raise InvalidAnswer(f"gives {shown(part)}, not a name and the numbers of operands", hint)
    return parts


def _is_part(part: Any, op: Op) -> bool:
    if not isinstance(part, tuple) or len(part) != 2 or not isinstance(part[1], tuple):
        return False
    name, numbers = part
    return isinstance(name, str) and all(isinstance(item, int) and 0 <= item < len(op.operands) for item in numbers)


def _is_amount(number: Any) -> bool:
    from numbers import Real

    if not isinstance(number, Real) or isinstance(number, bool):
        return False
    try:
        return isfinite(number) and float(number) >= 0
    except OverflowError:
        return False


def _collective(answer: Any, op: Op) -> OwnCollective | None:
    if answer is None:
        return None
    from shardy_py.ir.interfaces.costs import COLLECTIVES, OwnCollective

    if not isinstance(answer, OwnCollective):
        raise InvalidAnswer(f"returned {shown(answer)}, not an OwnCollective or None")
    if answer.kind not in COLLECTIVES:
        raise InvalidAnswer(f"gives the collective {shown(answer.kind)}", f"the kinds are {', '.join(COLLECTIVES)}")
    group = answer.group
    if not isinstance(group, (list, tuple)) or not all(isinstance(item, int) and item >= 0 for item in group):
        raise InvalidAnswer(f"gives the group {shown(group)}, not numbers of devices")
    return answer


_COST: dict[str, Check | None] = {
    "get_flops": _flops,
    "get_work": _work,
    "get_equal_operand": _equal_operand,
    "get_updated_operand": _equal_operand,
    "get_overwritten_operands": _operand_numbers,
    "get_choices": _library_operands,
    "get_library_operands": _library_operands,
    "get_parts": _parts,
    "get_windows": _windows,
    "get_mirrored_dims": _dims,
    "is_fusible": as_boolean,
    "is_expensive": as_boolean,
    "is_branching": as_boolean,
    "is_repeated": as_boolean,
    "get_region_runs": _runs,
    "get_collective": _collective,
}
