"""The cases of all ops of StableHLO that have a sharding rule."""

from __future__ import annotations

from tests.conformance.local_ops import algebra, contracting, elementwise, indexing, moving, reducing

FAMILIES = (elementwise, moving, contracting, reducing, indexing, algebra)
CASES = [case for family in FAMILIES for case in family.CASES]
