"""The copies that XLA's copy_insertion.cc makes: of what loops carry, and of results that are arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import field

from shardy_py.cost.estimates.fusion import CostFusion
from shardy_py.cost.estimates.graph import Carried, Node, Section, Tensor, makers_above
from shardy_py.cost.estimates.kernel_order import readers
from shardy_py.cost.machines.profile import Profile
from shardy_py.support.identity import identity
from shardy_py.values import frozen


@frozen
class CarriedCopies:
    """Finds the tensors that are copied.

    Args:
        fusion: The kernels.
        profile: The rules of the backend.
    """

    fusion: CostFusion
    profile: Profile
    _numbers: dict[int, tuple[Section, dict[int, int], dict[int, int]]] = field(factory=dict, init=False, eq=False)

    def of_loop(self, node: Node) -> Iterator[tuple[float, list[Tensor]]]:
        """Yield the copies of what a loop carries, with the number of times that each is made.

        What starts in an argument that is not donated, or in a tensor that something else starts in or takes, is copied
        once before the loop, unless the loop needs the latter. In each iteration, what is still read when its next
        value is there is copied, and what is handed on by an op that does not write over its operand.
        """
        if not self.profile.copies_carried:
            return
        changing = [item for item in node.carried if not item.is_unchanged]
        last = {identity(item.initial): item for item in changing}
        for item in changing:
            if item.initial.maker is None:
                is_copied = item.initial.is_kept or node.section.owner is not None
            else:
                is_copied = last[identity(item.initial)] is not item or _is_used_apart(item.initial, node)
            if is_copied:
                yield node.runs, [item.initial]
            for section in node.sections:
                yield section.runs, self.in_region(section, item)

    def of_results(self, main: Section) -> Iterator[Tensor]:
        """Yield the results that are arguments without donation, or earlier results: each gets memory of its own.

        As in copy_insertion.cc::AddSpecialCaseCopies.
        """
        if not self.profile.copies_carried:
            return
        seen = set()
        for tensor in main.results:
            if identity(tensor) in seen or (tensor.maker is None and tensor.is_kept):
                yield tensor
            seen.add(identity(tensor))

    def in_region(self, section: Section, item: Carried) -> list[Tensor]:
        """Return the tensors that a region copies so that the next value of a carried tensor can reuse its memory.

        The old value is copied where an op may read it after the next one is written. The next value is copied where
        it is also the old value of another carried tensor.
        """
        parameter_numbers, result_numbers = self._numbers_of(section)
        parameter = _first(section.parameters, parameter_numbers, item.parameters)
        result = _first(section.results, result_numbers, item.yielded)
        if parameter is None or result is None or not self.profile.copies_carried:
            return []
        maker = result.maker
        if maker is None or maker.section is not section:
            is_other = identity(result) in parameter_numbers and result is not parameter
            return (
                [parameter, result] if is_other and (parameter.users or self.is_handed_on(section, parameter)) else []
            )
        return (
            [parameter]
            if self.is_handed_on(section, parameter) or self._is_read_late(section, parameter, maker)
            else []
        )

    def is_handed_on(self, section: Section, tensor: Tensor) -> bool:
        """Return whether a value is a result of its section."""
        return identity(tensor) in self._numbers_of(section)[1]

    def _numbers_of(self, section: Section) -> tuple[dict[int, int], dict[int, int]]:
        """Return the numbers of the parameters and of the results of a section, by identity."""
        if identity(section) not in self._numbers:
            parameters, results = (
                {identity(tensor): number for number, tensor in reversed(list(enumerate(tensors)))}
                for tensors in (section.parameters, section.results)
            )
            self._numbers[identity(section)] = section, parameters, results
        return self._numbers[identity(section)][1:]

    def _is_read_late(self, section: Section, tensor: Tensor, maker: Node) -> bool:
        """Return whether a kernel may read a value when the kernel that makes its next one has begun to write.

        One that the maker needs may not, nor the maker itself, if it goes through the elements one by one.
        """
        positions = set(readers(section, tensor))
        if maker.position in positions and not self.fusion.is_fusible(maker):
            return True
        positions.discard(maker.position)
        if not positions or max(positions) > maker.position:
            return bool(positions)
        return not positions <= makers_above(maker, min(positions))


def _is_used_apart(tensor: Tensor, node: Node) -> bool:
    """Return whether something takes a tensor that need not be there before a node is."""
    positions = set(readers(node.section, tensor)) - {node.position}
    return bool(positions) and not positions <= makers_above(node, min(positions))


def _first(tensors: Sequence[Tensor], numbers: Mapping[int, int], candidates: Iterable[Tensor]) -> Tensor | None:
    """Return the first tensor that is among the candidates."""
    matching = [numbers[identity(tensor)] for tensor in candidates if identity(tensor) in numbers]
    return tensors[min(matching)] if matching else None
