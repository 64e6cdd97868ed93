"""Process groups for the collectives of a local program: those of the device mesh, and new ones for other groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from attrs import field

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.ir.graph.program import Program
from shardy_py.values import define

Groups = Sequence[Sequence[int]]


_GroupsByRanks = dict[tuple[int, ...], Any]
"""The ranks of each process group, in order, to the group.

None in processes that are not in it, and for the group of all processes: as a value it would keep its own key alive.
"""
_KNOWN_GROUPS: WeakKeyDictionary[Any, dict[Any, _GroupsByRanks]] = WeakKeyDictionary()
"""The group of all processes to the known groups of each set of devices: all programs use one for the same ranks."""


@define(eq=False)
class ProcessGroups:
    """The process groups of a device mesh, one for each set of ranks.

    Every process must ask for the same groups in the same order, as making a new one is a collective of its own.

    Attributes:
        device_mesh: The devices.
        ranks: Device number to rank.
        device: The number of the device of this process.
    """

    device_mesh: Any
    ranks: Sequence[int] = field(init=False)
    device: int = field(init=False)
    _by_ranks: _GroupsByRanks = field(init=False)

    def __attrs_post_init__(self) -> None:
        import torch.distributed as dist

        self.ranks = [int(rank) for rank in self.device_mesh.mesh.flatten()]
        self.device = self.ranks.index(dist.get_rank())
        everyone = tuple(sorted(self.ranks))
        # The processes of other devices did not ask for the same groups.
        by_devices = _KNOWN_GROUPS.setdefault(dist.group.WORLD, {})
        self._by_ranks = by_devices.setdefault((everyone, self.device_mesh.device_type), {})
        if everyone == tuple(range(dist.get_world_size())):
            self._by_ranks.setdefault(everyone, None)
        for dim in range(self.device_mesh.ndim):
            group = self.device_mesh.get_group(dim)
            lines = self.device_mesh.mesh.swapdims(-1, dim).reshape(-1, self.device_mesh.mesh.size(dim)).tolist()
            for line in lines:
                is_kept = dist.get_rank() in line and group is not dist.group.WORLD
                self._by_ranks.setdefault(tuple(sorted(line)), group if is_kept else None)

    def name(self, groups: Groups) -> str:
        """Return the name of the process group of this device, among the groups of a collective."""
        return str(self.group(groups).group_name)

    def group(self, groups: Groups) -> Any:
        """Return the process group of this device, among those of a collective, which are made if they are new.

        Args:
            groups: The devices of each.
        """
        import torch.distributed as dist

        by_ranks = sorted({tuple(sorted(self.ranks[device] for device in group)) for group in groups})
        missing = [ranks for ranks in by_ranks if ranks not in self._by_ranks]
        if missing:
            self._by_ranks.update(_new_process_groups(missing, self.device_mesh))
        own_ranks = tuple(sorted(self.ranks[device] for device in self.members(groups)))
        return self._by_ranks[own_ranks] or dist.group.WORLD

    @property
    def everyone(self) -> Any:
        """The process group of all devices of the mesh."""
        return self.group([range(len(self.ranks))])

    def gather(self, tensor: Any) -> list[Any]:
        """Return the tensor of each device of the mesh, in their order."""
        import torch
        import torch.distributed as dist

        gathered = [torch.empty_like(tensor) for _ in self.ranks]
        dist.all_gather(gathered, tensor.contiguous(), group=self.everyone)
        return [gathered[position] for position in self.positions([range(len(self.ranks))])]

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
        dist.all_reduce(votes, dist.ReduceOp.MIN, self.everyone)
        return bool(votes.item())

    def members(self, groups: Groups) -> Sequence[int]:
        """Return the devices of the group of this device, in the order of the collective."""
        return next(group for group in groups if self.device in group)

    def positions(self, groups: Groups) -> list[int]:
        """Return the position in the process group, which has its ranks in order, of each member."""
        members = self.members(groups)
        ranks = sorted(self.ranks[device] for device in members)
        return [ranks.index(self.ranks[device]) for device in members]


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


def _new_process_groups(groups: Iterable[tuple[int, ...]], device_mesh: Any) -> _GroupsByRanks:
    """Return new process groups by their ranks; processes outside of the mesh need not ask for them.

    Args:
        groups: The ranks of each.
        device_mesh: The devices, all of whose processes ask for the same groups in the same order.

    Raises:
        OptionError: the processes of the mesh are in different numbers of process groups.
    """
    import torch.distributed as dist

    check_groups_can_be_made(device_mesh)
    is_part = device_mesh.mesh.numel() < dist.get_world_size()
    return {ranks: dist.new_group(list(ranks), use_local_synchronization=is_part) for ranks in groups}


def check_groups_can_be_made(device_mesh: Any) -> None:
    """Check that the processes of a mesh that is a part of all can make a process group without the others.

    PyTorch names such a group after its ranks and after the number of groups that a process has: where this number
    differs, the processes would wait for each other forever.

    Raises:
        OptionError: the processes of the mesh are in different numbers of process groups.
    """
    import torch
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import _world

    if device_mesh.mesh.numel() == dist.get_world_size():
        return
    count = len(_world.pg_names)
    bounds = torch.tensor([count, -count], device=device_mesh.device_type)
    for dim in range(device_mesh.ndim):
        dist.all_reduce(bounds, op=dist.ReduceOp.MAX, group=device_mesh.get_group(dim))
    most, least = int(bounds[0]), -int(bounds[1])
    if most != least:
        message = f"the processes of the mesh are in {least} to {most} process groups, and can make no further one"
        hint = "use meshes that do not overlap, or place each tensor along single dimensions of the mesh"
        raise OptionError(Diagnostic("overlapping-meshes", message, hint=hint))
