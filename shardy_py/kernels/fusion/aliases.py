"""Results that share the memory of a parameter."""

from __future__ import annotations

from shardy_py.kernels.fusion.choose import Choice, EmitterKind
from shardy_py.kernels.fusion.fusion import Fusion
from shardy_py.kernels.fusion.in_place import in_place_updates, updated_parameter
from shardy_py.kernels.fusion.scatters import scatter_of


def aliases_of(fusion: Fusion, choice: Choice) -> tuple[int | None, ...]:
    """Return for every root the number of the parameter whose memory it shares, or None."""
    if choice.kind is EmitterKind.SCATTER:
        return (fusion.parameters.index(scatter_of(fusion).operands[0]),)
    if choice.kind is not EmitterKind.IN_PLACE_DYNAMIC_UPDATE_SLICE:
        return (None,) * len(fusion.roots)
    sources = [updated_parameter(fusion, update) for update in in_place_updates(fusion)]
    return tuple(fusion.parameters.index(source) for source in sources)


def slices_of(fusion: Fusion, choice: Choice) -> tuple[int, ...]:
    """Return the number of the buffer of every parameter, then of every root."""
    count = len(fusion.parameters)
    found = list(range(count))
    following = count
    for alias in aliases_of(fusion, choice):
        found.append(following if alias is None else alias)
        following += alias is None
    return tuple(found)
