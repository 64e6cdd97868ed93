"""Transfers where the fewest bytes move, instead of where another mesh uses a value first.

An op without a name runs on each mesh that uses it, so a value moves before it: in `cast(f(x))` between two stages, the
wide tensor does. An op can also run where its operands are, and its result move. For each mesh this is a minimum cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from shardy_py.ir.graph.dead_ops import is_removable
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.rewriting import clone_op
from shardy_py.ir.interfaces.ops import OpSemantics
from shardy_py.ir.interfaces.passes import PassContext
from shardy_py.mpmd.dialect.calls import block_of, callee_of, calls_of
from shardy_py.mpmd.dialect.fragments import mpmd_functions, new_assign, new_unassign
from shardy_py.mpmd.dialect.op_names import ASSIGN, CALL, TRANSFER, UNASSIGN, USE_SET
from shardy_py.mpmd.dialect.types import MeshTensor, is_on_mesh, require_mesh_tensor
from shardy_py.mpmd.passes.inference.byte_cuts import ByteCut
from shardy_py.mpmd.passes.inference.mesh_sets import is_meshless, set_of_argument, set_of_result, used_values
from shardy_py.values import NoFields, define

_ANYWHERE = frozenset({"*"})
_NOWHERE: frozenset[str] = frozenset()


class InferMeshCheapestTransfersPass(NoFields):
    """Assign the results of ops without a mesh to meshes that have their operands, where that moves fewer bytes.

    Not one of the reference: there, a value always moves as soon as another mesh uses it. Bytes are those of whole
    tensors. Only values that some mesh has without another transfer are moved, and no value more than once to a mesh.
    """

    name: ClassVar[str] = "mpmd-infer-mesh-cheapest-transfers"

    def run(self, program: Program, context: PassContext) -> None:
        """Rewrite all functions with a topology; it comes after the use sets, and before the rewrite by them."""
        called = calls_of(program)
        for function in mpmd_functions(program):
            is_callee = function.attributes["sym_name"] in called
            _Function.of(function, context.semantics, is_callee=is_callee).rewrite()


@define(eq=False)
class _Function:
    """The ops of a function, with the meshes that have their results and those that need them.

    Args:
        function: The function.
        homes: Id of a value to the meshes that have it without a transfer; ``*`` is every mesh.
        floating: The ids of arguments that only ops of one mesh use, and of what is computed of them alone, with the
            arguments: they cost nothing on any one mesh.
        tied: The ids of ops that use something floating, directly or through others; they run on one mesh only.
        needed: Mesh to the ops that it needs, by id, in the order of the block.
        sinks: Mesh to the uses of values that only it needs.
        fixed: Mesh to the values that it must compute itself, as others need them, too, at the same use.
    """

    function: Op
    homes: dict[int, frozenset[str]]
    floating: dict[int, frozenset[int]]
    tied: set[int]
    needed: dict[str, dict[int, Op]]
    sinks: dict[str, list[tuple[Op, int]]]
    fixed: dict[str, set[int]]

    @classmethod
    def of(cls, function: Op, semantics: OpSemantics, *, is_callee: bool) -> _Function:
        """Return what is known about a function."""
        self = cls(function, {}, {}, set(), {}, {}, {})
        for op in self.block.ops:
            for number, meshes in self._uses(op):
                for mesh in meshes:
                    if len(meshes) == 1:
                        self.sinks.setdefault(mesh, []).append((op, number))
                    else:
                        self.fixed.setdefault(mesh, set()).add(op.operands[number].id)
        for mesh in sorted({*self.sinks, *self.fixed}):
            self.needed[mesh] = self._cone(mesh)
        # An argument that ops with operands on different meshes use would have to be on both.
        settled: set[int] = set()
        while True:
            torn = self._find_homes(semantics, settled, is_callee=is_callee)
            if not torn:
                return self
            settled |= torn

    def _find_homes(self, semantics: OpSemantics, settled: set[int], *, is_callee: bool) -> set[int]:
        """Find the meshes that have each value; return the floating arguments that are used on several."""
        self.homes, self.floating, self.tied = {}, {}, set()
        for value in self.block.arguments:
            self._visit_argument(value, may_float=not is_callee and value.id not in settled, is_callee=is_callee)
        meshes: dict[int, set[str]] = {}
        for op in self.block.ops:
            self._visit_op(op, semantics)
            for value in used_values(op) if op.id in self.tied else ():
                for argument in self.floating.get(value.id, ()):
                    meshes.setdefault(argument, set()).update(self.homes[op.results[0].id])
        return {argument for argument, names in meshes.items() if len(names) > 1}

    @property
    def block(self) -> Block:
        """The body."""
        return block_of(self.function)

    def _uses(self, op: Op) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Iterate over the operands of an op that meshes need, with these meshes."""
        if op.name == ASSIGN:
            yield 0, (require_mesh_tensor(op.results[0]).mesh,)
            return
        if is_meshless(op) and op is not self.block.terminator:
            return
        for number in range(len(op.operands)):
            use_set = None
            if op.name == CALL:
                use_set = set_of_argument(callee_of(op), number, USE_SET)
            elif op is self.block.terminator:
                use_set = set_of_result(self.function, number, USE_SET)
            if use_set:
                yield number, use_set.names

    def _cone(self, mesh: str) -> dict[int, Op]:
        """Return the ops without a mesh that a mesh needs, directly or through others, in the order of the block."""
        needed_ids = {op.operands[number].id for op, number in self.sinks.get(mesh, ())} | self.fixed.get(mesh, set())
        ops = []
        for op in reversed(list(self.block.ops)):
            if is_meshless(op) and any(value.id in needed_ids for value in op.results):
                ops.append(op)
                needed_ids.update(value.id for value in used_values(op))
        return {op.id: op for op in reversed(ops)}

    def _meshes_of(self, op: Op) -> list[str]:
        return [mesh for mesh, ops in self.needed.items() if op.id in ops]

    def _visit_argument(self, value: Value, *, may_float: bool, is_callee: bool) -> None:
        if is_on_mesh(value):
            return
        use_set = set_of_argument(self.function, value.index, USE_SET)
        names = sorted(use_set.names) if use_set else []
        # One of a microbatch is on all meshes that use it, one of the program starts on one: where it must be.
        assigned = {require_mesh_tensor(user.results[0]).mesh for user in value.users if user.name == ASSIGN}
        first = sorted(assigned.intersection(names) or names)[:1]
        self.homes[value.id] = frozenset(names if is_callee else first) or _ANYWHERE
        if len(names) == 1 and may_float and all(map(is_meshless, value.users)):
            self.floating[value.id] = frozenset({value.id})

    def _visit_op(self, op: Op, semantics: OpSemantics) -> None:
        """Note which meshes have the results of an op."""
        if op.name == UNASSIGN:
            source = op.operands[0]
            moved = [user.results[0] for user in source.users if user.name == TRANSFER]
            types = map(require_mesh_tensor, (source, *moved))
            home = frozenset(type_.mesh for type_ in types if not type_.is_off_device)
        elif op.name == CALL:
            for value in op.results:
                use_set = set_of_result(callee_of(op), value.index, USE_SET)
                self.homes[value.id] = frozenset(use_set.names) if use_set else _ANYWHERE
            return
        elif is_meshless(op) and is_removable(op, semantics):
            home = self._home(op)
        else:
            # What a loop or a sum over meshes gives is where it is needed, and an op with effects stays there.
            home = _NOWHERE if is_meshless(op) else _ANYWHERE
        self.homes.update((value.id, home) for value in op.results)

    def _home(self, op: Op) -> frozenset[str]:
        values = used_values(op)
        floating = [value for value in values if value.id in self.floating]
        homes = [self.homes[value.id] for value in values if value not in floating]
        known = [home for home in homes if home != _ANYWHERE]
        if known:
            home = frozenset.intersection(*known)
            if floating or any(value.owning_op.id in self.tied for value in values):
                self.tied.add(op.id)
                home = frozenset(sorted(home)[:1])
            return home
        if not floating:
            return _ANYWHERE
        arguments = frozenset.union(*(self.floating[value.id] for value in floating))
        self.floating.update((value.id, arguments) for value in op.results)
        return self.homes[floating[0].id]

    def rewrite(self) -> None:
        """Assign what moves to the mesh that it comes from."""
        moved: dict[int, Value] = {}
        for mesh in self.needed:
            local = self._local_ops(mesh)
            if local is not None:
                self._redirect(mesh, local, moved)

    def _is_free(self, value: Value, mesh: str) -> bool:
        home = self.homes.get(value.id, _ANYWHERE)
        return value.id not in self.floating and (home == _ANYWHERE or mesh in home)

    def _local_ops(self, mesh: str) -> set[int] | None:
        """Return the ids of the ops that a mesh runs itself; None where it runs all, as in the reference."""
        cut = ByteCut()
        fixed = self.fixed.get(mesh, set())
        sinks = [op.operands[number] for op, number in self.sinks.get(mesh, ())]
        ops = self.needed[mesh]
        for op in ops.values():
            is_free = all(self._is_free(value, mesh) for value in op.results)
            if not is_free:
                is_fixed = not self.homes[op.results[0].id] or any(value.id in fixed for value in op.results)
                cut.add_op(op, is_fixed=is_fixed, is_movable=op.results[0].id not in self.floating)
            for value in used_values(op):
                if self._is_free(value, mesh):
                    continue
                self._add_value(cut, value, ops)
                if is_free:
                    cut.need(value)
                else:
                    is_tied = value.id in self.floating or value.owning_op.id in self.tied
                    cut.use(value, op, is_together=is_tied)
        for value in sinks:
            if not self._is_free(value, mesh):
                self._add_value(cut, value, ops)
                cut.need(value)
        local = cut.solve()
        return None if len(local) == cut.op_count else local

    def _add_value(self, cut: ByteCut, value: Value, ops: dict[int, Op]) -> None:
        if value.owning_op.id not in ops or value.is_block_argument:
            cut.add_leaf(value, is_elsewhere=value.id not in self.floating)

    def _redirect(self, mesh: str, local: set[int], moved: dict[int, Value]) -> None:
        """Let a mesh use the results of the ops that others run for it."""
        mapping: dict[int, Value] = {}
        remote: dict[int, Value] = {}
        for op in self.needed[mesh].values():
            if all(self._is_free(value, mesh) for value in op.results):
                continue
            if op.id not in local:
                remote.update((value.id, value) for value in op.results)
                continue
            values = used_values(op)
            mapping.update((value.id, self._moved(value, moved)) for value in values if value.id in remote)
            if not any(value.id in mapping for value in values):
                continue
            if len(self._meshes_of(op)) == 1:
                _replace_used(op, mapping)
            else:
                self.block.insert_after(op, clone_op(op, mapping))
        for op, number in self.sinks.get(mesh, ()):
            value = op.operands[number]
            if value.id in remote:
                op.set_operand(number, self._moved(value, moved))
            elif value.id in mapping:
                op.set_operand(number, mapping[value.id])

    def _moved(self, value: Value, moved: dict[int, Value]) -> Value:
        """Return a value off the mesh that has it."""
        if value.id not in moved:
            op = value.owning_op
            type_: Any = value.type
            assign = new_assign(op.program, value, MeshTensor(min(self.homes[value.id]), type_))
            self.block.insert_after(op, assign)
            moved[value.id] = self.block.insert_after(assign, new_unassign(op.program, assign.results[0])).results[0]
        return moved[value.id]


def _replace_used(op: Op, mapping: dict[int, Value]) -> None:
    """Let an op and those in its regions use other values."""
    for inner in op.walk():
        for number, value in enumerate(inner.operands):
            if value.id in mapping:
                inner.set_operand(number, mapping[value.id])
