"""Profiles of backends: the rules by which a compiler changes the collectives and the types of a program."""

from __future__ import annotations

from math import inf

from shardy_py.cost.machines.machine import Machine
from shardy_py.errors import OptionError, unknown_name
from shardy_py.values import frozen


@frozen
class Profile:
    """The rules that hold for a backend.

    Args:
        name: Its name.
        follows_results: Whether communication follows from the shardings of results, as that of XLA's SPMD partitioner
            does; otherwise it is that of Shardy's explicit reshards.
        hoists_invariant_ops: Whether ops in a loop that give the same in each iteration run once, before the loop.
        simplifies_communication: Whether communications that nobody uses are dropped.
        combined_bytes: The largest number of bytes of the all-reduces that become one; 0 for none.
        makes_reduce_scatters: Whether an all-reduce of which each device keeps a part becomes a reduce-scatter.
        widens_bfloat16: Whether ``bf16`` is computed, and sent between devices, in ``f32``, and floats of 8 bits are
            sent in ``f16``, integers of 4 bits in ``i8``.
        transposes_collectives: Whether a gather along another dimension than the first one, and an all-to-all, copy
            their operand and their result.
        transposes_operands: Whether the operands of products are copied where their batch dimensions do not come first.
        copies_carried: Whether what loops carry is copied where its old value is still needed, and arguments that are
            results.
        reserves_results: Whether results have memory of their own from the start, in which others may lie before.
        runs_breadth_first: Whether kernels run as soon as what they read is there, rather than in the program's order.
        ungroups_batches: Whether a convolution with a group of the batch for each feature is computed for all pairs of
            groups and features, of which a mask keeps its own.
        expands_solvers: Whether decompositions of matrices and triangular systems become loops.
        has_kernel_library: Whether a library computes reductions together with the ops around them.
        limits_repeats: Whether an op is stored whose code would stand in a kernel too often.
        fuses_tables: Whether a gather or a scatter that is fused counts as a read, and a write, of its whole table.
    """

    name: str
    follows_results: bool = False
    hoists_invariant_ops: bool = False
    simplifies_communication: bool = False
    combined_bytes: float = 0.0
    makes_reduce_scatters: bool = True
    widens_bfloat16: bool = False
    transposes_collectives: bool = False
    transposes_operands: bool = False
    copies_carried: bool = False
    reserves_results: bool = False
    runs_breadth_first: bool = False
    ungroups_batches: bool = False
    expands_solvers: bool = False
    has_kernel_library: bool = False
    limits_repeats: bool = False
    fuses_tables: bool = False


PROFILES: tuple[Profile, ...] = (
    # CpuAllReduceCombiner has no limit in bytes; WhileLoopInvariantCodeMotion is part of cpu_compiler.cc's pipeline.
    Profile(
        "xla-cpu",
        follows_results=True,
        hoists_invariant_ops=True,
        simplifies_communication=True,
        combined_bytes=inf,
        makes_reduce_scatters=False,
        widens_bfloat16=True,
        transposes_collectives=True,
        transposes_operands=True,
        copies_carried=True,
        reserves_results=True,
        runs_breadth_first=True,
        ungroups_batches=True,
        expands_solvers=True,
        has_kernel_library=True,
        limits_repeats=True,
        fuses_tables=True,
    ),
    # gpu_compiler.cc: AllReduceCombiner with kDefaultAllReduceCombineThreshold, ReduceScatterCreator; no hoisting.
    Profile(
        "xla-gpu",
        follows_results=True,
        simplifies_communication=True,
        combined_bytes=30 * 1024 * 1024 + 7,
        reserves_results=True,
    ),
    Profile("none"),
)
NO_PROFILE = PROFILES[-1]


def get_profile(name: str) -> Profile:
    """Return the profile of a name.

    Raises:
        OptionError: there is no such profile.
    """
    known = {item.name: item for item in PROFILES}
    if name not in known:
        raise OptionError(unknown_name("unknown-profile", f"there is no profile {name!r}", name, tuple(known)))
    return known[name]


def choose_profile(profile: str | Profile | None, machine: Machine | None) -> Profile:
    """Return a profile: the given one, or that of a machine.

    Raises:
        OptionError: there is no such profile.
    """
    if isinstance(profile, Profile):
        return profile
    if profile is not None:
        return get_profile(profile)
    return NO_PROFILE if machine is None else get_profile(machine.profile)
