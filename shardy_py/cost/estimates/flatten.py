"""Flat forms of programs, with the number of runs of each op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from attrs import field

from shardy_py.cost.estimates.duplicate_ops import OpKeys, axes_key, take_parts
from shardy_py.cost.estimates.graph import Carried, Node, RuleOf, Section, Tensor, put_back, walk
from shardy_py.cost.estimates.merged_communications import Sharing
from shardy_py.cost.estimates.op_kinds import OpKind, OpKinds
from shardy_py.cost.estimates.sizes import LocalSizes
from shardy_py.cost.machines.profile import NO_PROFILE, Profile
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.ir.graph.graphs import callee_of
from shardy_py.ir.graph.op_names import MANUAL_COMPUTATION, MESH
from shardy_py.ir.graph.program import Block, Op, Program, Value
from shardy_py.ir.graph.symbols import check_has_body, has_body
from shardy_py.ir.interfaces.ops import Contraction, PassThrough, Reshape
from shardy_py.plugins import Registry
from shardy_py.sharding.manual_axes import resolve_mesh
from shardy_py.sharding.tensor import symbol
from shardy_py.support.identity import identity
from shardy_py.values import define

DONATED = ("tf.aliasing_output", "jax.buffer_donor")
"""Attributes of arguments whose memory the results may take; JAX's names."""
_SHARDINGS = ("in_shardings", "out_shardings")
_Names = dict[int, Tensor]


@define
class Flattener:
    """Makes the flat form of a program.

    Args:
        program: The program.
        registry: The definitions of ops.
        rule_of: Gives the rule of an op.
        profile: The rules of the backend.
        notes: What was assumed.
        kinds: The kinds of ops.
    """

    program: Program
    registry: Registry
    rule_of: RuleOf
    profile: Profile = NO_PROFILE
    notes: dict[str, None] = field(factory=dict)
    kinds: OpKinds = field(init=False)
    _sizes: LocalSizes = field(init=False)
    _sharing: Sharing = field(init=False)
    _runs: list[float] = field(factory=list, init=False)
    _open: list[bool] = field(factory=list, init=False)
    _calls: list[str] = field(factory=list, init=False)
    _initial: dict[int, int] = field(factory=dict, init=False)
    _frame: int = field(default=0, init=False)
    _frames: int = field(default=0, init=False)
    _keys: OpKeys = field(factory=OpKeys, init=False)
    _axes: dict[object, int] = field(factory=dict, init=False)
    _numbers: dict[int, int] = field(factory=dict, init=False)
    _types: dict[object, int] = field(factory=dict, init=False)
    _type_numbers: dict[int, int] = field(factory=dict, init=False)
    _seen: dict[tuple[object, ...], Node] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.kinds = OpKinds(self.registry, self.profile)
        self._sizes = LocalSizes(self.program, self.registry, None)
        self._sharing = Sharing(self.kinds, self.rule_of, self._sizes)

    def flatten(self, main: Op) -> Section:
        """Return the main function.

        Raises:
            UnsupportedError: functions are recursive, or the main function has no body.
        """
        check_has_body(main)
        self._runs, self._open = [1.0], [False]
        section = Section()
        block = main.regions[0].blocks[0]
        section.parameters = [Tensor(value) for value in block.arguments]
        arg_attrs: Sequence[Mapping[str, Any]] = main.attributes.get("arg_attrs") or ({},) * len(section.parameters)
        for tensor, attributes in zip(section.parameters, arg_attrs, strict=True):
            tensor.is_kept = not any(name in attributes for name in DONATED)
        names = {tensor.value.id: tensor for tensor in section.parameters}
        section.results = self._block(block, section, names, 1)
        for tensor in section.results:
            tensor.is_result = True
        take_parts(section)
        self._drop_unused(section)
        put_back(section)
        return section

    def _drop_unused(self, section: Section) -> None:
        """Drop nodes whose results are not used."""
        result_ids = {identity(tensor) for tensor in section.results}
        nodes = []
        for node in reversed(section.nodes):
            for inner in node.sections:
                self._drop_unused(inner)
            if not _is_droppable(node) or any(
                tensor.users or identity(tensor) in result_ids for tensor in node.outputs
            ):
                nodes.append(node)
                continue
            for user in (node, *(other for inner in node.sections for other in walk(inner))):
                for tensor in user.inputs:
                    tensor.users.remove(user)
        nodes.reverse()
        section.nodes = nodes
        for position, node in enumerate(nodes):
            node.position = position

    def _block(self, block: Block, section: Section, names: _Names, parts: int) -> list[Tensor]:
        """Add the ops of a block to a section; return what the block hands on."""
        results: list[Tensor] = []
        kind_of = self.kinds.of
        for op in block.ops:
            kind = kind_of(op)
            if kind.is_terminator:
                results = [names[value.id] for value in op.operands]
            elif (op.regions or not kind.is_ordinary) and self._is_entered(op, kind, section, names, parts):
                continue
            elif kind.has_data_flow and self._hands_on(op):
                names.update(
                    {value.id: names[operand.id] for value, operand in zip(op.results, op.operands, strict=True)}
                )
            elif kind.implements("get_equal_operand") and (equal := self._equal_operand(op, kind)) is not None:
                names[op.results[0].id] = names[equal.id]
            else:
                self._op(op, kind, section, names, parts)
        return results

    def _is_entered(self, op: Op, kind: OpKind, section: Section, names: _Names, parts: int) -> bool:
        """Enter what a call, a manual computation, a view or a sole branch is the same as; return whether it is one."""
        if (callee := callee_of(op)) is not None:
            if not has_body(self.program.functions[callee]):
                return False
            self._call(op, callee, section, names, parts)
        elif op.name == MANUAL_COMPUTATION:
            self._manual(op, section, names, parts)
        elif Reshape in kind.traits or (PassThrough in kind.traits and self._is_folded(op)):
            # Another view of the same bytes.
            names[op.results[0].id] = names[op.operands[0].id]
        elif len(op.regions) == 1 and self._is_always_taken(op):
            results = self._block(op.regions[0].blocks[0], section, dict(names), parts)
            names.update({value.id: tensor for value, tensor in zip(op.results, results, strict=True)})
        else:
            return op.name == MESH
        return True

    def _is_always_taken(self, op: Op) -> bool:
        """Return whether the only region of an op runs once, whatever its operands.

        As in XLA's conditional_simplifier.cc; JAX leaves such branches of code for one platform.
        """
        blocks = op.regions[0].blocks
        if len(blocks) != 1 or blocks[0].arguments or self.registry.get_data_flow(op) is None:
            return False
        ending = blocks[0].terminator
        return self._region_runs(op) == [1.0] and ending is not None and len(ending.operands) == len(op.results)

    def _is_folded(self, op: Op) -> bool:
        """Return whether an op only rearranges an operand of products, which read it in any order.

        As in XLA's transpose_folding.cc.
        """
        if len(op.operands) != 1 or len(op.results) != 1:
            return False
        users = op.results[0].users
        return bool(users) and all(Contraction in self.kinds.of(user).traits for user in users)

    def _hands_on(self, op: Op) -> bool:
        """Return whether the results of an op are its operands, as those of a barrier are."""
        flow = None if op.regions or len(op.operands) != len(op.results) else self.registry.get_data_flow(op)
        return flow is not None and all(
            [source.value for source in flow.get_edge_sources(op, result)] == [operand]
            for result, operand in zip(op.results, op.operands, strict=True)
        )

    def _equal_operand(self, op: Op, kind: OpKind) -> Value | None:
        """Return the operand that the result of an op equals, as in XLA's algebraic_simplifier.cc."""
        number = None if kind.cost is None else kind.cost.get_equal_operand(op)
        if number is None:
            return None
        operand, result = op.operands[number], op.results[0]
        if operand.type != result.type:
            return None
        # What a loop carries has no sharding of its own, but that of the loop.
        operand_axes, result_axes = (axes_key(self._sizes.sharding(value)) for value in (operand, result))
        return operand if operand_axes == result_axes else None

    def _is_repeated(self, op: Op, kind: OpKind) -> bool:
        return kind.cost is not None and kind.cost.is_repeated(op)

    def _call(self, op: Op, callee: str, section: Section, names: _Names, parts: int) -> None:
        if callee in self._calls:
            raise _recursion(op, callee)
        function = self.program.functions[callee]
        block = function.regions[0].blocks[0]
        inner = {argument.id: names[value.id] for argument, value in zip(block.arguments, op.operands, strict=True)}
        self._calls.append(callee)
        self._frames += 1
        frame, self._frame = self._frame, self._frames
        results = self._block(block, section, inner, parts)
        self._frame = frame
        self._calls.pop()
        names.update({value.id: tensor for value, tensor in zip(op.results, results, strict=True)})

    def _manual(self, op: Op, section: Section, names: _Names, parts: int) -> None:
        block = op.regions[0].blocks[0]
        inner = dict(names)
        for argument, value in zip(block.arguments, op.operands, strict=True):
            # Another view of the same shard: the type inside is that of one device.
            inner[argument.id] = names[value.id]
        results = self._block(block, section, inner, parts * self._manual_groups(op))
        names.update({value.id: tensor for value, tensor in zip(op.results, results, strict=True)})

    def _op(self, op: Op, kind: OpKind, section: Section, names: _Names, parts: int) -> None:
        inputs = [names[value.id] for value in op.operands]
        is_control_flow = bool(op.regions) and self.is_control_flow(op)
        depth = section.depth if is_control_flow else self._depth(kind, inputs, section)
        may_merge = kind.is_mergeable and not (
            is_control_flow or (kind.implements("is_repeated") and self._is_repeated(op, kind))
        )
        key = self._key(op, kind, section, inputs, depth) if may_merge else None
        equal = None if key is None else self._seen.get(key)
        if equal is not None and (not kind.is_collective or self._sharing.is_shared(op, inputs, equal)):
            names.update({value.id: tensor for value, tensor in zip(op.results, equal.outputs, strict=True)})
            return
        is_hoisted = depth < section.depth
        # By position, as there are thousands.
        node = Node(op, kind, section, inputs, (), self._runs[depth], parts, depth, is_hoisted, len(section.nodes))
        for tensor in inputs:
            tensor.users.append(node)
        outputs = []
        for value in op.results:
            tensor = names[value.id] = Tensor(value, node, [], depth)
            outputs.append(tensor)
        node.outputs = outputs
        section.nodes.append(node)
        if is_control_flow:
            self._regions(node, names, parts)
        elif key is not None:
            self._seen.setdefault(key, node)

    def _key(
        self, op: Op, kind: OpKind, section: Section, inputs: Sequence[Tensor], depth: int
    ) -> tuple[object, ...] | None:
        """Return the same key for ops that a compiler computes once; None where an op is equal to no other one."""
        key = self._keys.key(op)
        if key is None:
            return None
        operands = [*map(identity, inputs)]
        if depth < section.depth and not (kind.is_collective or kind.is_hoisted_for_users_only):
            # What leaves a loop is equal to what is computed before it from what the loop starts with.
            operands = [*map(self._before_loops, operands)]
            while section.depth > depth and section.owner is not None:
                section = section.owner.section
        # What different calls move stays apart.
        frame = self._frame if kind.is_collective else 0
        results = op.results
        if len(results) == 1:
            value = results[0]
            return (key, identity(section), frame, self._type_number(value), self._axes_number(value), *operands)
        numbers = [(self._type_number(value), self._axes_number(value)) for value in results]
        return (key, identity(section), frame, *numbers, *operands)

    def _before_loops(self, number: int) -> int:
        """Return the identity of the tensor that an unchanged parameter of a loop starts as; others are themselves."""
        while number in self._initial:
            number = self._initial[number]
        return number

    def _type_number(self, value: Value) -> int:
        """Return a number of the type of a value, the same for equal types; identities are looked up faster."""
        number = self._type_numbers.get(identity(value.type))
        if number is None:
            number = self._type_numbers[identity(value.type)] = self._types.setdefault(value.type, len(self._types))
        return number

    def _axes_number(self, value: Value) -> int:
        """Return a number of the sharding of a value, the same where `axes_key` is."""
        sharding = self.program.shardings.get(value.id)
        number = self._numbers.get(identity(sharding))
        if number is None:
            number = self._axes.setdefault(axes_key(sharding), len(self._axes))
            self._numbers[identity(sharding)] = number
        return number

    def _depth(self, kind: OpKind, inputs: Sequence[Tensor], section: Section) -> int:
        """Return the depth at which a node runs: where its operands change, if it may leave loops around it."""
        depth = section.depth
        if not depth or not inputs or not kind.is_movable or not self.profile.hoists_invariant_ops:
            return depth
        needed_depth = max([tensor.depth for tensor in inputs])
        while depth > needed_depth and self._open[depth]:
            depth -= 1
        return depth

    def _regions(self, node: Node, names: _Names, parts: int) -> None:
        op = node.op
        runs = self._region_runs(op)
        is_loop = carries(op, self.registry)
        node.carried = list(self._carried(node, names)) if is_loop else []
        sections = node.sections = []
        unchanged = {
            identity(tensor): item.initial.depth
            for item in node.carried
            if item.is_unchanged
            for tensor in item.parameters
        }
        self._initial |= {
            identity(tensor): identity(item.initial)
            for item in node.carried
            if item.is_unchanged
            for tensor in item.parameters
        }
        parameters = {tensor.value.id: tensor for item in node.carried for tensor in item.parameters}
        for region, count in zip(op.regions, runs, strict=True):
            for block in region.blocks:
                inner = Section(node, depth=node.depth + 1, runs=node.runs * count)
                self._runs[node.depth + 1 :] = [node.runs * count]
                self._open[node.depth + 1 :] = [is_loop]
                local = dict(names)
                for value in block.arguments:
                    tensor = parameters.get(value.id) or Tensor(value)
                    tensor.depth = unchanged.get(identity(tensor), inner.depth)
                    inner.parameters.append(tensor)
                    local[value.id] = tensor
                inner.results = self._block(block, inner, local, parts)
                sections.append(inner)
                for item in node.carried:
                    item.yielded += [local[value.id] for value in self._yielded(op, item, block) if value.id in local]
        del self._runs[node.depth + 1 :], self._open[node.depth + 1 :]

    def _carried(self, node: Node, names: _Names) -> Sequence[Carried]:
        """Return the values that a loop carries, from its data flow."""
        op = node.op
        flow = self.registry.get_data_flow(op)
        assert flow is not None
        outputs = {tensor.value.id: tensor for tensor in node.outputs}
        carried_values = []
        for owner in (*flow.get_op_result_edge_owners(op), *flow.get_block_argument_edge_owners(op)):
            sources = flow.get_edge_sources(op, owner)
            initial = next((source.value for source in sources if source.op is op), None)
            if initial is None:
                continue
            targets = [owner, *flow.get_non_edge_owner_targets(op, owner)]
            arguments = [value for value in targets if value.is_block_argument]
            handed_on = [source.value for source in sources if source.op is not op]
            is_unchanged = bool(handed_on) and all(value in arguments for value in handed_on)
            output = next((outputs[value.id] for value in targets if value.id in outputs), None)
            carried = Carried(names[initial.id], [Tensor(value) for value in arguments], [], output, is_unchanged)
            carried_values.append(carried)
        return carried_values

    def _yielded(self, op: Op, item: Carried, block: Block) -> list[Value]:
        flow = self.registry.get_data_flow(op)
        assert flow is not None
        owner = flow.get_edge_owner_from_target(op, item.parameters[0].value) if item.parameters else None
        if owner is None:
            return []
        sources = flow.get_edge_sources(op, owner)
        return [source.value for source in sources if source.op is not op and source.op.parent is block]

    def is_control_flow(self, op: Op) -> bool:
        """Return whether the cost of an op is that of its regions, not what its rule or dialect says."""
        if not op.regions or self.registry.get_data_flow(op) is not None:
            return bool(op.regions)
        return self.rule_of(op) is None and not self.kinds.of(op).implements("get_work")

    def _region_runs(self, op: Op) -> list[float]:
        cost = self.registry.get_cost(op)
        if cost is not None:
            runs = list(cost.get_region_runs(op))
        else:
            runs = [None if carries(op, self.registry) else 1.0] * len(op.regions)
        if any(number is None for number in runs):
            place = f" at {op.location}" if op.location else ""
            self.notes[f"how often {op.name}{place} runs its regions is not known: counted once"] = None
        return [1.0 if number is None else number for number in runs]

    def _manual_groups(self, op: Op) -> int:
        """Return the number of groups of devices that a manual computation gives work of their own."""
        meshes = self.program.meshes
        mentioned = [item for name in _SHARDINGS if name in op.attributes for item in op.attributes[name].shardings]
        mesh = next((resolved for item in mentioned if (resolved := resolve_mesh(item.mesh, meshes)) is not None), None)
        return 1 if mesh is None else prod(mesh.axis_size(name) for name in op.attributes["manual_axes"].names)


def _is_droppable(node: Node) -> bool:
    """Return whether a node is pure, so that it can be dropped where its results are not used."""
    if not node.outputs:
        return False
    if not node.sections:
        return node.kind.is_mergeable
    return all(map(_is_droppable, (other for inner in node.sections for other in inner.nodes)))


def carries(op: Op, registry: Registry) -> bool:
    """Return whether the results of an op start as its operands, as those of a loop do."""
    data_flow = registry.get_data_flow(op) if op.regions else None
    if data_flow is None:
        return False
    owners = (*data_flow.get_op_result_edge_owners(op), *data_flow.get_block_argument_edge_owners(op))
    return any(
        _starts_as_operand(op, [source.op for source in data_flow.get_edge_sources(op, owner)]) for owner in owners
    )


def _starts_as_operand(op: Op, sources: Sequence[Op]) -> bool:
    return op in sources and any(source is not op for source in sources)


def _recursion(call: Op, callee: str) -> UnsupportedError:
    message = f"the function {symbol(callee)} calls itself, directly or through others"
    hint = "unroll the recursion, or use a loop op"
    return UnsupportedError(Diagnostic("recursion", message, call.location, call.name, hint))
