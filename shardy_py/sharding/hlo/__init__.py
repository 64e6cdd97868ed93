"""Shardings of HLO, as GSPMD has them: tile assignments instead of axes."""

from shardy_py.sharding.hlo.convert import (
    derive_meshes,
    find_mesh,
    fits_mesh,
    from_hlo_sharding,
    manual_axes_of,
    to_hlo_sharding,
)
from shardy_py.sharding.hlo.sharding import HloSharding, ShardGroup, parse_hlo_sharding
from shardy_py.sharding.hlo.tiles import TileAssignment

__all__ = [
    "HloSharding",
    "ShardGroup",
    "TileAssignment",
    "derive_meshes",
    "find_mesh",
    "fits_mesh",
    "from_hlo_sharding",
    "manual_axes_of",
    "parse_hlo_sharding",
    "to_hlo_sharding",
]
