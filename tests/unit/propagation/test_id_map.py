"""Maps from ids to numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardy_py.propagation.id_map import ABSENT, IdMap


@given(st.dictionaries(st.integers(0, 30), st.integers(0, 100)))
def test_an_id_map_is_a_mapping(items: dict[int, int]) -> None:
    """It has the items that were set, in the order of the ids, and no others."""
    found = IdMap(31)
    for id_, number in items.items():
        found[id_] = number
    assert dict(found) == items
    assert list(found) == sorted(items)
    assert len(found) == len(items)
    assert all((id_ in found) == (id_ in items) for id_ in range(31))
    assert all(found.numbers[id_] == items.get(id_, ABSENT) for id_ in range(31))


@pytest.mark.parametrize("id_", [-1, 2, 99])
def test_ids_that_are_newer_have_no_number(id_: int) -> None:
    """An id beyond the size of the map is absent, and so is a negative one."""
    found = IdMap(2)
    found[1] = 7
    assert found.get(id_) is None
    with pytest.raises(KeyError):
        _ = found[id_]
