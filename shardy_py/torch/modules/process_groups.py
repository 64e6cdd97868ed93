"""Process groups for the collectives of a local program: those of the device mesh, and new ones for other groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import field

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.program import Program
from shardy_py.torch.parallel.collectives import new_process_groups
from shardy_py.values import define

Groups = Sequence[Sequence[int]]


@define(eq=False)
class ProcessGroups:
    """The process groups of a device mesh.

    Every process must ask for the same groups in the same order, as making a new one is a collective of its own.

    Attributes:
        device_mesh: The devices.
        ranks: Device number to rank.
        device: The number of the device of this process.
    """

    device_mesh: Any
    ranks: Sequence[int] = field(init=False)
    device: int = field(init=False)
    _known: dict[tuple[tuple[int, ...], ...], dict[int, Any]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        import torch.distributed as dist

        self.ranks = [int(rank) for rank in self.device_mesh.mesh.flatten()]
        self.device = self.ranks.index(dist.get_rank())
        for dim in range(self.device_mesh.ndim):
            group = self.device_mesh.get_group(dim)
            lines = self.device_mesh.mesh.swapdims(-1, dim).reshape(-1, self.device_mesh.mesh.size(dim)).tolist()
            self._known[_key(lines)] = {rank: group for line in lines for rank in line}

    def name(self, groups: Groups) -> str:
        """Return the name of the process group of this device, among the groups of a collective."""
        return str(self._group(groups).group_name)

    def all_agree(self, answer: bool) -> bool:
        """Return whether the answer of every process is yes.

        Each process has numbers of its own in its graphs, such as where its shard begins. A decision by them is to be
        the same on all processes, as otherwise their collectives would differ.
        """
        import torch
        import torch.distributed as dist

        if len(self.ranks) == 1:
            return answer
        votes = torch.tensor(int(answer), device=torch.device(self.device_mesh.device_type))
        dist.all_reduce(votes, dist.ReduceOp.MIN, self._group([range(len(self.ranks))]))
        return bool(votes.item())

    def members(self, groups: Groups) -> Sequence[int]:
        """Return the devices of the group of this device, in the order of the collective."""
        return next(group for group in groups if self.device in group)

    def positions(self, groups: Groups) -> list[int]:
        """Return the position in the process group, which has its ranks in order, of each member."""
        members = self.members(groups)
        ranks = sorted(self.ranks[device] for device in members)
        return [ranks.index(self.ranks[device]) for device in members]

    def _group(self, groups: Groups) -> Any:
        """Return the process group of this device, among some that are made if they are not there yet."""
        key = _key([[self.ranks[device] for device in group] for group in groups])
        if key not in self._known:
            self._known[key] = _make_process_groups(key, self.device_mesh)
        return self._known[key][self.ranks[self.device]]


def check_groups_outside(program: Program, ranks: Sequence[int]) -> None:
    """Check that the collectives that a program has already are among processes outside of the mesh.

    Args:
        program: The program.
        ranks: The ranks of the devices of the mesh.

    Raises:
        OptionError: several devices of the mesh are in the group of a collective: their shards would be combined.
    """
    for op in program.walk():
        name = op.attributes.get("group_name")
        if not op.name.startswith("_c10d_functional") or name is None:
            continue
        inside = sorted(set(_ranks_of(str(name))) & set(ranks))
        if len(inside) > 1:
            message = f"the collective is among the ranks {inside} of the mesh, which have shards of one tensor"
            hint = "propagate over a mesh of the other dimensions only, such as device_mesh['data']"
            raise OptionError(Diagnostic("collective-in-mesh", message, op.location, op.name, hint))


def _ranks_of(name: str) -> Sequence[int]:
    """Return the ranks of a process group."""
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import _resolve_process_group

    ranks: Sequence[int] = dist.get_process_group_ranks(_resolve_process_group(name))
    return ranks


def _key(groups: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(sorted(tuple(sorted(group)) for group in groups))


def _make_process_groups(key: tuple[tuple[int, ...], ...], device_mesh: Any) -> dict[int, Any]:
    import torch.distributed as dist

    if key == (tuple(range(dist.get_world_size())),):
        return dict.fromkeys(key[0], dist.group.WORLD)
    return {rank: group for ranks, group in new_process_groups(key, device_mesh).items() for rank in ranks}
