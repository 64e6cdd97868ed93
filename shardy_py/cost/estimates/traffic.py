"""Bytes that kernels read and write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from attrs import Factory, field

from shardy_py.cost.estimates.carried_copies import CarriedCopies
from shardy_py.cost.estimates.flops import Work
from shardy_py.cost.estimates.fusion import CostFusion, CostKernel
from shardy_py.cost.estimates.graph import Node, RuleOf, Section, Tensor
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.machines.profile import Profile
from shardy_py.ir.graph.op_names import ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER
from shardy_py.ir.graph.program import Op
from shardy_py.ir.graph.types import TensorType
from shardy_py.ir.interfaces.ops import Contraction, Elementwise
from shardy_py.sharding.rule import OpShardingRule
from shardy_py.support.identity import identity
from shardy_py.values import frozen

HOW = (
    "the shards that each kernel reads and writes; what passes between elementwise ops, ops that move data and"
    " reductions is fused, and slices and updates count what they touch"
)


def _no_rule(op: Op) -> OpShardingRule | None:
    return None


@frozen
class Traffic:
    """Bytes of kernels and of values.

    Args:
        sizes: Measures values.
        fusion: The kernels.
        profile: The rules of the backend.
        halos: The bytes of the halos of each node that gets some and is not part of another kernel, by its id.
        halo_buffers: The bytes in memory that a node with halos needs besides, by its id.
        rule_of: Gives the rule of an op.
    """

    sizes: LocalSizes
    fusion: CostFusion
    profile: Profile
    halos: Mapping[int, int] = Factory(dict)
    halo_buffers: Mapping[int, int] = Factory(dict)
    rule_of: RuleOf = _no_rule
    carried: CarriedCopies = field(init=False, eq=False)

    @carried.default
    def _make_carried(self) -> CarriedCopies:
        return CarriedCopies(self.fusion, self.profile)

    def _has_copies(self, node: Node) -> bool:
        """Return whether a node may move more than its operands and results."""
        rules, kind = self.profile, node.kind
        if not (self.halos or rules.follows_results or rules.widens_bfloat16):
            return False
        return Contraction in kind.traits or kind.is_collective or identity(node) in self.halos

    def bytes_of(self, kernel: CostKernel) -> float:
        """Return the bytes that one device reads and writes for a kernel."""
        added = self.added_bytes(kernel.root)
        if self.fusion.is_in_library(kernel.root):
            added += sum(self.added_bytes(node) for node in kernel.nodes if node is not kernel.root)
        return self.read_bytes(kernel) + self._written(kernel.root) + added

    def read_bytes(self, kernel: CostKernel) -> float:
        """Return the bytes that one device reads for a kernel."""
        inside = {identity(node) for node in kernel.nodes}
        whole_inputs: dict[int, Tensor] = {}
        parts: dict[int, float] = {}
        for node in kernel.nodes:
            work = node.work
            if not work.reads:
                for tensor in node.inputs:
                    if identity(tensor.maker) not in inside:
                        whole_inputs[identity(tensor)] = tensor
                continue
            for number, tensor in enumerate(node.inputs):
                if identity(tensor.maker) in inside:
                    continue
                amount = self._read(work, number, tensor)
                if amount is None:
                    whole_inputs[identity(tensor)] = tensor
                else:
                    parts[identity(tensor)] = parts.get(identity(tensor), 0.0) + amount
        read = 0.0 + sum([self.stored_bytes(tensor) for tensor in whole_inputs.values()])
        return read + sum(parts.values()) if parts else read

    def slices_of(self, node: Node) -> int:
        """Return how often a kernel is computed: once for each device that a part of its result is sent to.

        That is so for what a kernel makes for an all-to-all alone, which slices it first.
        """
        if not self.profile.transposes_collectives:
            return 1
        users = node.outputs[0].users if len(node.outputs) == 1 else []
        if len(users) != 1 or users[0].op.name != ALL_TO_ALL:
            return 1
        is_taken = self._is_made_for(users[0]) and not node.outputs[0].is_result
        return self._devices(users[0]) if is_taken else 1

    def halo_bytes(self, tensor: Tensor, halo: int) -> float:
        """Return the bytes that are moved for the halo of a value, which a kernel joins with the shard.

        A kernel slices it, unless the one that makes the value does; a permutation sends it, and the other reads it.
        """
        return (5.0 if self.fusion.is_stored(tensor) else 4.0) * halo

    def added_bytes(self, node: Node) -> float:
        """Return the bytes that the backend moves for a node besides its operands and results."""
        if not self._has_copies(node):
            return 0.0
        converted = sum(self.stored_bytes(tensor) for tensor in self.converted(node)) + self._transposed_bytes(node) / 2
        halo = self.halos.get(identity(node), 0)
        # A permutation reads and writes a halo, and a slice before it; what comes in is joined with the shard.
        joined = 4 * halo + 2 * (self.stored_bytes(node.inputs[0]) + halo) if halo else 0
        copied = self._exchanged_bytes(node) if node.op.name == ALL_TO_ALL else 2 * self.copied_bytes(node)
        return copied + 4 * converted + joined + self._cut_bytes(node) + self._sliced_bytes(node)

    def _exchanged_bytes(self, node: Node) -> float:
        """Return the bytes that slices before an all-to-all, and a concatenation behind it, read and write.

        There is a slice for each device of a group, and each reads the whole operand, or what a kernel makes it of.
        """
        if not self.profile.transposes_collectives:
            return 0.0
        devices = self._devices(node)
        operand_bytes, result_bytes = self.stored_bytes(node.inputs[0]), self.stored_bytes(node.outputs[0])
        maker = node.inputs[0].maker
        is_made = self._is_made_for(node) and maker is not None and len(maker.inputs) == 1
        sliced = (devices - 1) * operand_bytes if is_made else (devices + 1) * operand_bytes
        return sliced + (0 if self._is_taken_by_kernels(node) else 2 * result_bytes)

    def _devices(self, node: Node) -> int:
        """Return the number of devices in a group of an all-to-all."""
        before, after = self.sizes.shape(node.op.operands[0]), self.sizes.shape(node.op.results[0])
        return max((size // part for part, size in zip(before, after, strict=True) if part), default=1)

    def _cut_bytes(self, node: Node) -> float:
        """Return the bytes of the copy of a gathered tensor without the padding of its uneven shards.

        Copies in another layout leave it out, and so do kernels that take the tensor.
        """
        if not self.profile.follows_results or node.op.name != ALL_GATHER:
            return 0.0
        before, after = self.sizes.shape(node.op.operands[0]), self.sizes.shape(node.op.results[0])
        is_even = all(size % part == 0 for part, size in zip(before, after, strict=True) if part)
        if is_even or self.copied_bytes(node) or self._is_taken_by_kernels(node):
            return 0.0
        return 2.0 * self.stored_bytes(node.outputs[0])

    def _sliced_bytes(self, node: Node) -> float:
        """Return what an all-reduce in place of a reduce-scatter writes besides, and what slicing its sums moves.

        Kernels of elementwise ops slice what they read.
        """
        if not self._is_whole_reduce(node):
            return 0.0
        part = self.stored_bytes(node.outputs[0])
        sliced = 0.0 if self._is_taken_by_kernels(node) else 2.0 * part
        return self.stored_bytes(node.inputs[0]) - part + sliced

    def _is_whole_reduce(self, node: Node) -> bool:
        """Return whether the backend makes an all-reduce of a reduce-scatter."""
        return node.op.name == REDUCE_SCATTER and not self.profile.makes_reduce_scatters

    def converted(self, node: Node) -> list[Tensor]:
        """Return the operands and results of a product that are converted from, or to, ``bf16`` for it."""
        if not self.profile.widens_bfloat16 or Contraction not in node.kind.traits:
            return []
        # A kernel of the library takes bf16, and gives f32.
        if not any(map(_is_bfloat16, node.outputs)):
            return []
        return [
            tensor for tensor in (*node.inputs, *node.outputs) if _is_bfloat16(tensor) and not self._is_widened(tensor)
        ]

    def converted_elements(self, kernel: CostKernel) -> int:
        """Return the number of elements that a kernel converts from ``bf16`` arguments, and to ``bf16`` results.

        In between it computes in ``f32``, as XLA's float_normalization.cc and simplify_fp_conversions.cc leave it.
        """
        if not self.profile.widens_bfloat16:
            return 0
        converted: dict[int, Tensor] = {}
        for node in kernel.nodes:
            inputs = [tensor for tensor in node.inputs if _is_bfloat16(tensor)]
            outputs = [tensor for tensor in node.outputs if _is_bfloat16(tensor)]
            if inputs and outputs and Elementwise in node.kind.traits:
                ends = (
                    *(tensor for tensor in inputs if tensor.maker is None),
                    *(tensor for tensor in outputs if tensor.is_result),
                )
                converted |= {identity(tensor): tensor for tensor in ends}
        return sum(prod(self.sizes.shape(tensor.value)) for tensor in converted.values())

    def _transposed_bytes(self, node: Node) -> float:
        return 0.0 + sum(self.stored_bytes(tensor) for tensor, _ in self._transposed(node))

    def _transposed(self, node: Node) -> list[tuple[Tensor, tuple[int, ...]]]:
        """Return the operands of a product that are copied with their batch dimensions first, and their shapes then.

        So are those whose other dimensions are on both sides of the contracted ones, or the other way around. As in
        XLA's dot_decomposer.cc. What a kernel makes for the product alone, it makes in that order.
        """
        if not self.profile.transposes_operands or Contraction not in node.kind.traits:
            return []
        rule = self.rule_of(node.op)
        if rule is None or len(node.inputs) != 2:
            return []
        moved, converted = [], {identity(tensor) for tensor in self.converted(node)}
        orders = ("batch", "free", "contracted"), ("batch", "contracted", "free")
        operands = zip(node.inputs, node.op.operands, rule.operand_mappings, orders, strict=True)
        for tensor, value, mapping, order in operands:
            # A dimension of which a device has one place may stand anywhere.
            shape = self.sizes.shape(value)
            kinds = [_dimension_kind(rule, dim) for dim, size in zip(mapping, shape, strict=False) if size != 1]
            runs = [kind for kind, before in zip(kinds, [None, *kinds], strict=False) if kind != before]
            is_leading = (runs[:1] == ["batch"] or "batch" not in runs) and len(runs) == len(set(runs))
            is_free = is_leading or identity(tensor) in converted or self._is_made_alone(tensor)
            if not is_free:
                dims = [
                    (order.index(_dimension_kind(rule, dim)), size) for dim, size in zip(mapping, shape, strict=False)
                ]
                moved.append((tensor, tuple(size for _, size in sorted(dims, key=lambda item: item[0]))))
        return moved

    def carried_bytes(self, node: Node) -> float:
        """Return the bytes of the copies of what a loop carries."""
        moved = 0.0
        for runs, tensors in self.carried.of_loop(node):
            moved += 2 * runs * sum([self.stored_bytes(tensor) for tensor in tensors])
        return moved

    def returned_bytes(self, main: Section) -> float:
        """Return the bytes of the copies of results."""
        return 0.0 + sum([2 * self.stored_bytes(tensor) for tensor in self.carried.of_results(main)])

    def copied_bytes(self, node: Node) -> float:
        """Return the bytes of the copies that a collective makes of its operand and result, in another layout.

        A kernel that makes the operand, or takes the result, may do so in that layout. Dimensions are gathered one
        after the other, the last one first; each but the outermost one needs the copies.
        """
        if not self.profile.transposes_collectives or node.op.name not in (ALL_GATHER, ALL_TO_ALL):
            return 0.0
        before, after = self.sizes.shape(node.op.operands[0]), self.sizes.shape(node.op.results[0])
        operand_bytes, result_bytes = self.stored_bytes(node.inputs[0]), self.stored_bytes(node.outputs[0])
        copied_in = 0 if self._is_made_for(node) else operand_bytes
        copied_out = 0 if self._is_taken_by_kernels(node) else result_bytes
        if node.op.name == ALL_TO_ALL:
            return copied_in + copied_out
        changed = [dim for dim, sizes in enumerate(zip(before, after, strict=True)) if sizes[0] != sizes[1]]
        copied, size = 0.0, float(operand_bytes)
        for dim in reversed(changed):
            outer, is_last = prod(before[:dim]), dim == changed[0]
            larger = result_bytes if is_last else size * after[dim] / before[dim]
            if outer > 1:
                copied += (copied_in if size == operand_bytes else 0.0) + (copied_out if is_last else larger)
            # What one gather makes, the next one takes.
            copied += 0.0 if is_last else larger
            size = larger
        return copied

    def _is_made_for(self, node: Node) -> bool:
        """Return whether the operand of a node is what a kernel makes for it alone."""
        (tensor,) = node.inputs
        return self._is_made_alone(tensor)

    def _is_made_alone(self, tensor: Tensor) -> bool:
        """Return whether a kernel makes a value for its only user, and no function or region hands it on."""
        maker = tensor.maker
        if maker is None or len(tensor.users) != 1 or not self.fusion.is_own_kernel(maker):
            return False
        return not self.carried.is_handed_on(maker.section, tensor)

    def _is_taken_by_kernels(self, node: Node) -> bool:
        """Return whether only kernels of elementwise ops take the result of a node."""
        (tensor,) = node.outputs
        return not tensor.is_result and all(self.fusion.is_own_kernel(user) for user in tensor.users)

    def copying_kernels(self, node: Node) -> int:
        """Return the number of kernels that copy for a node, one after the other: operands first, then the result."""
        if not self._has_copies(node) or not node.inputs:
            return 0
        if Contraction in node.kind.traits:
            return 1 if self.operand_copies(node) else 0
        if not self.copied_bytes(node):
            return 0
        return (not self._is_made_for(node)) + (not self._is_taken_by_kernels(node))

    def operand_copies(self, node: Node) -> list[tuple[Tensor, tuple[int, ...], int]]:
        """Return the operands of a product that are copied for it, with the shape and the bytes of each copy."""
        if not self._has_copies(node) or Contraction not in node.kind.traits:
            return []
        converted = self.converted(node)
        wide = [(tensor, (), 2 * self.stored_bytes(tensor)) for tensor in node.inputs if _is_among(tensor, converted)]
        return [*wide, *((tensor, shape, self.stored_bytes(tensor)) for tensor, shape in self._transposed(node))]

    def extra_bytes(self, node: Node) -> float:
        """Return the bytes of other copies that live while a node runs, or directly behind it."""
        buffers = self.halo_buffers.get(identity(node), 0)
        if not self._has_copies(node) or not node.inputs:
            return buffers
        halo = self.halos.get(identity(node), 0)
        joined = buffers + (self.stored_bytes(node.inputs[0]) + halo if halo else 0)
        converted = 2 * sum(self.stored_bytes(item) for item in self.converted(node) if _is_among(item, node.outputs))
        summed = self.stored_bytes(node.inputs[0]) if self._is_whole_reduce(node) else 0
        return self._copies_beside(node) + converted + joined + summed

    def _copies_beside(self, node: Node) -> float:
        """Return the bytes of the copies of a collective that live beside its operand and result."""
        copied, (operand, *_) = self.copied_bytes(node), node.inputs
        # The first copy takes the place of an operand that nothing else needs.
        is_replaced = operand.maker is not None and len(operand.users) == 1
        return max(0, copied - self.stored_bytes(operand)) if is_replaced else copied

    def stored_bytes(self, tensor: Tensor) -> int:
        """Return the bytes that a value takes in the memory of one device, once all kernels are known."""
        size = tensor.stored_bytes
        if size is None:
            size = self.sizes.bytes(tensor.value) if self.fusion.is_stored(tensor) else 0
            size = tensor.stored_bytes = 2 * size if self._is_widened(tensor) else size
        return size

    def _is_widened(self, tensor: Tensor) -> bool:
        if not self.profile.widens_bfloat16 or tensor.maker is None or tensor.is_result:
            return False
        return _is_bfloat16(tensor)

    def _read(self, work: Work, number: int, tensor: Tensor) -> float | None:
        """Return the bytes that a node reads of an operand; None for all of it."""
        elements = work.reads.get(number)
        if elements is None or (number in work.tables and self.profile.fuses_tables):
            return None
        return elements * self._width(tensor)

    def _written(self, root: Node) -> float:
        work = root.work
        written = 0.0
        if not work.writes:
            for tensor in root.outputs:
                written += self.stored_bytes(tensor)
            return written
        for number, tensor in enumerate(root.outputs):
            elements = work.writes.get(number)
            is_whole = elements is None or (number in work.tables and self.profile.fuses_tables)
            written += self.stored_bytes(tensor) if is_whole else (elements or 0.0) * self._width(tensor)
            if elements is not None and self._copies(root, number):
                written += 2 * self.stored_bytes(root.inputs[work.targets.get(number, number)])
        return written

    def _copies(self, root: Node, number: int) -> bool:
        """Return whether an op that writes into an operand needs a copy: others need the operand later."""
        target = root.inputs[root.work.targets.get(number, number)]
        if target.maker is None:
            return target.is_kept
        later = [user for user in target.users if user is not root and user.position > root.position]
        return bool(later)

    def _width(self, tensor: Tensor) -> float:
        """Return the bytes of an element."""
        count = prod(self.sizes.shape(tensor.value))
        return self.stored_bytes(tensor) / count if count else 0.0


def _is_among(tensor: Tensor, tensors: Iterable[Tensor]) -> bool:
    return any(tensor is other for other in tensors)


def _dimension_kind(rule: OpShardingRule, factors: tuple[int, ...]) -> str:
    """Return the kind of a dimension of an operand of a product."""
    if all(factor in rule.reduction_factors for factor in factors):
        return "contracted"
    return "batch" if all(rule.is_batching(factor) for factor in factors) else "free"


def _is_bfloat16(tensor: Tensor) -> bool:
    type_ = tensor.value.type
    return isinstance(type_, TensorType) and type_.element_type == "bf16"
