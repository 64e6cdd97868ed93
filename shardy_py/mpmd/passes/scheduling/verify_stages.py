"""Stages that were merged completely.

Mirrors mpmd/transforms/common/merge_fragments.cc.
"""

from __future__ import annotations

from typing import ClassVar

from shardy_py.errors import Diagnostic, VerificationError
from shardy_py.ir.graph.program import Op, Program
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of
from shardy_py.mpmd.dialect.fragments import (
    SPLIT_WORDS,
    call_counter_of,
    is_remat,
    is_user_fragment,
    mesh_of,
    mpmd_functions,
    origins_of,
    single_transpose_count,
    split_kind,
    stage_of,
)
from shardy_py.values import NoFields


class VerifyStageMergingPass(NoFields):
    """Refuse programs in which a mesh has two fragments for one stage and one microbatch."""

    name: ClassVar[str] = "mpmd-verify-stage-merging"

    def run(self, program: Program, context: PassContext) -> None:
        """Check the fragments of each function.

        Raises:
            VerificationError: there are two such fragments; all pairs are named.
        """
        problems: list[Diagnostic] = []
        for function in mpmd_functions(program):
            seen: dict[tuple[object, ...], list[Op]] = {}
            for op in block_of(function).ops:
                if not is_user_fragment(op) or stage_of(op) is None:
                    continue
                key = mesh_of(op), stage_of(op), single_transpose_count(op), split_kind(op), is_remat(op)
                others = seen.setdefault(key, [])
                counter = call_counter_of(op)
                if any(counter is None or call_counter_of(item) in (None, counter) for item in others):
                    message = (
                        "A valid program cannot have more than one fragment with the same mesh, stage, transpose, call "
                        "counts, split type, and remat flag but found multiple fragments with the same attributes: "
                        f"[{_attributes(op)}] for current fragment with origin: [{_origins(op)}]"
                    )
                    hint = "give the named computations different stages, or let one use what the other makes"
                    problems.append(Diagnostic("duplicate-stage", message, op.location, op.name, hint))
                others.append(op)
        if problems:
            raise VerificationError(*problems)


def _attributes(op: Op) -> str:
    counts = [single_transpose_count(op), call_counter_of(op)]
    transpose, call = ["-1" if count is None else str(count) for count in counts]
    return (
        f"mesh={mesh_of(op)}, stage_id={stage_of(op)}, transpose_count={transpose}, call_count={call}, "
        f"split_type={SPLIT_WORDS.get(split_kind(op), 'nullopt')}, is_remat={int(is_remat(op))}"
    )


def _origins(op: Op) -> str:
    return ", ".join(str(origin.attribute) for origin in origins_of(op))
