"""Import of the shardings of GSPMD: attributes ``mhlo.sharding``, and custom calls that give or change shardings.

They are read into the op graph of whatever kind of input: to shardings over a mesh, sharding constraints, sharding
groups and manual computations.
"""

from __future__ import annotations

from collections.abc import Collection

from shardy_py.errors import Diagnostic
from shardy_py.ir.graph.program import Program
from shardy_py.jax.gspmd.importer.annotated import annotated_ops, is_round_trip, mark_round_trip

__all__ = ["import_gspmd", "import_round_trip"]


def import_round_trip(program: Program, *, attribute_names: Collection[str] | None = None) -> bool:
    """Restore the meshes and shardings of Shardy that a module keeps as text (``xla.sdy.sharding``).

    Such a module has a copy of them in terms of GSPMD, which is dropped.

    Args:
        program: The program; changed in place.
        attribute_names: The names of all attributes of the ops, where these are known.

    Returns:
        Whether it is such a module.

    Raises:
        ShardyError: a text cannot be read, or a manual computation has another form than XLA gives it.
    """
    if not (is_round_trip(program) or mark_round_trip(program, attribute_names)):
        return False
    from shardy_py.jax.gspmd.importer.round_trip import read_shardings
    from shardy_py.jax.gspmd.importer.round_trip_manual import read_manual_calls

    read_shardings(program)
    read_manual_calls(program)
    return True


def import_gspmd(
    program: Program, *, may_add_meshes: bool = True, attribute_names: Collection[str] | None = None
) -> tuple[Diagnostic, ...] | None:
    """Convert the shardings of GSPMD in a module to attributes ``sdy.sharding`` and ops of ``sdy``.

    Shardings are said over the meshes that the program has. Where there is none that fits, the mesh is made of the
    common factors of all tile assignments, see `shardy_py.sharding.hlo.derive_meshes`. A value that has a sharding of
    Shardy as well keeps that.

    Args:
        program: The program; changed in place, its table of shardings is not filled yet.
        may_add_meshes: Whether a mesh may be added beside those of the program.
        attribute_names: The names of all attributes of the ops, where these are known.

    Returns:
        What was left out, as warnings; None where there is nothing to convert.

    Raises:
        ShardyError: an annotation cannot be read, or the meshes do not fit.
    """
    ops = annotated_ops(program, attribute_names)
    if not ops:
        return None
    from shardy_py.jax.gspmd.importer.annotations import Annotations
    from shardy_py.jax.gspmd.importer.custom_calls import read_sharding_calls
    from shardy_py.jax.gspmd.importer.manual import read_manual_computations
    from shardy_py.jax.gspmd.importer.meshes import Meshes
    from shardy_py.jax.gspmd.importer.values import read_values

    annotations = Annotations(program)
    meshes = Meshes.of(program, annotations.all_shardings(ops), may_add=may_add_meshes)
    read_manual_computations(program, annotations, meshes)
    warnings: list[Diagnostic] = []
    read_sharding_calls(program, annotations, meshes)
    read_values(program, annotations, meshes, warnings)
    return tuple(warnings)
