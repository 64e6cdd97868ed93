"""Shardings as small integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from threading import Lock

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.propagation.steps.whole_axis import Names, WholeAxisTensor, open_tensor, whole_axis_tensor
from shardy_py.sharding.axes import AxisRef
from shardy_py.sharding.mesh import Mesh
from shardy_py.sharding.tensor import DimensionSharding, TensorSharding, symbol

_AXES = attrgetter("axes")
NO_SHARDING = 0
"""The id of a missing sharding."""


class ShardingTable:
    """Interned shardings: equal shardings have the same id; threads may share them.

    Attributes:
        meshes: The meshes by name.
        values: Id to sharding.
        has_axes: Id to whether a dimension has an axis: without one there is nothing to propagate.
    """

    __slots__ = (
        "_dims",
        "_ids",
        "_lock",
        "_meshes_of",
        "_one_mesh",
        "_open",
        "_whole_axis_ids",
        "_whole_axis_tensors",
        "has_axes",
        "meshes",
        "values",
    )

    def __init__(self, meshes: Mapping[str, Mesh]) -> None:
        self.meshes = meshes
        self.values: list[TensorSharding | None] = [None]
        self.has_axes = [False]
        self._lock = Lock()
        self._ids: dict[TensorSharding, int] = {}
        self._open: dict[tuple[str | Mesh, int], int] = {}
        self._whole_axis_tensors: dict[int, WholeAxisTensor | None] = {}
        self._meshes_of: dict[int, tuple[str | Mesh, Mesh]] = {}
        self._one_mesh = True
        self._dims: dict[tuple[Names, bool], DimensionSharding] = {}
        self._whole_axis_ids: dict[tuple[str | Mesh, tuple[Names, ...], tuple[bool, ...]], int] = {}

    def intern(self, sharding: TensorSharding | None) -> int:
        """Return the id of a sharding; 0 for None."""
        if sharding is None:
            return NO_SHARDING
        known_id = self._ids.get(sharding)
        return self._enter(sharding) if known_id is None else known_id

    def _enter(self, sharding: TensorSharding) -> int:
        with self._lock:
            known_id = self._ids.get(sharding)
            if known_id is None:
                known_id = len(self.values)
                self.values.append(sharding)
                self._one_mesh = self._one_mesh and sharding.mesh == self.values[1].mesh  # type: ignore[union-attr]
                self.has_axes.append(any(map(_AXES, sharding.dim_shardings)))
                # Last, as other threads find the id from here on.
                self._ids[sharding] = known_id
        return known_id

    def mesh_of(self, sharding: TensorSharding) -> Mesh:
        """Return the mesh of a sharding, looked up by name unless it is inlined."""
        mesh = sharding.mesh
        if isinstance(mesh, Mesh):
            return mesh
        named_mesh = self.meshes.get(mesh)
        if named_mesh is None:
            known = ", ".join(map(symbol, self.meshes)) or "none"
            message = f"unknown mesh {symbol(mesh)} in sharding {sharding}"
            raise VerificationError(Diagnostic("unknown-mesh", message, hint=f"the module's meshes are {known}"))
        return named_mesh

    def fully_open_like(self, sharding_id: int, rank: int) -> int:
        """Return the id of the fully open sharding of a rank on the mesh of another sharding."""
        sharding = self.values[sharding_id]
        assert sharding is not None, "the sharding that was just set exists"
        key = (sharding.mesh, rank)
        if key not in self._open:
            self._open[key] = self.intern(TensorSharding.fully_open(sharding.mesh, rank))
        return self._open[key]

    def whole_axis_tensor(self, sharding_id: int, rank: int) -> WholeAxisTensor | None:
        """Return a sharding without sub-axes, an open one of some rank where it is missing; None for any other."""
        key = sharding_id or -rank
        if key not in self._whole_axis_tensors:
            sharding = self.values[sharding_id]
            self._whole_axis_tensors[key] = open_tensor(rank) if sharding is None else whole_axis_tensor(sharding)
        return self._whole_axis_tensors[key]

    def intern_whole_axes(self, mesh: str | Mesh, dims: tuple[Names, ...], closed: tuple[bool, ...]) -> int:
        """Return the id of a sharding along whole axes, with no axes but those of the dimensions.

        Most are known already, and these names are hashed much faster than a sharding is made.
        """
        key = (mesh, dims, closed)
        known_id = self._whole_axis_ids.get(key)
        if known_id is None:
            sharding = TensorSharding(mesh, tuple(map(self.dimension, dims, closed)))
            known_id = self._whole_axis_ids[key] = self.intern(sharding)
            self._whole_axis_tensors[known_id] = WholeAxisTensor(dims, closed, ())
        return known_id

    def dimension(self, names: Names, is_closed: bool) -> DimensionSharding:
        """Return the sharding of a dimension along whole axes, the same object for the same axes."""
        cached = self._dims.get((names, is_closed))
        if cached is None:
            axes = tuple([AxisRef(name) for name in names])
            cached = self._dims[names, is_closed] = DimensionSharding(axes, is_closed)
        return cached

    def common_mesh(self, ids: Sequence[int]) -> tuple[str | Mesh, Mesh] | None:
        """Return the mesh (as written, and itself) that all shardings share, or None.

        Shardings on empty meshes agree with any other.
        """
        if self._one_mesh:
            return (self._meshes_of.get(1) or self._find_mesh(1)) if any(ids) else None
        common: tuple[str | Mesh, Mesh] | None = None
        for sharding_id in ids:
            if sharding_id == NO_SHARDING:
                continue
            name_and_mesh = self._meshes_of.get(sharding_id) or self._find_mesh(sharding_id)
            if common is None or common[1].is_empty:
                common = name_and_mesh
            elif name_and_mesh[1] is not common[1] and not name_and_mesh[1].is_empty and name_and_mesh[1] != common[1]:
                return None
        return common

    def _find_mesh(self, sharding_id: int) -> tuple[str | Mesh, Mesh]:
        """Return the mesh of a sharding, as written and itself."""
        sharding = self.values[sharding_id]
        assert sharding is not None, "a missing sharding has no mesh"
        name_and_mesh = self._meshes_of[sharding_id] = (sharding.mesh, self.mesh_of(sharding))
        return name_and_mesh
