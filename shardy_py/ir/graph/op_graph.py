"""Values, ops, blocks and regions: the parts of the op graph.

The graph is the one mutable structure of the package: prepare and finish rewrite it in place between the two
ends of a run. Everything else is a frozen value. Lists of uses, operands, regions and the links between ops change
through the methods here only; whoever makes ops in bulk (readers and copies of programs) fills them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from shardy_py.ir.graph.attributes import Attribute
from shardy_py.ir.graph.types import TensorType, Type

if TYPE_CHECKING:
    from shardy_py.ir.graph.program import Program

Use = tuple["Op", int]
"""An op that uses a value, and the number of the operand."""


class Value:
    """A result of an op, an argument of a block, or a result of a function.

    Attributes:
        id: A number unique in its program; the key of the sharding table.
        type: The type.
        owner: The op of a result, the block of an argument, the function op of a function result.
        index: The position among the owner's results or arguments.
        uses: Every use, oldest first. MLIR keeps them newest first and the reference visits users in that order, so
            the order is part of the program.
    """

    __slots__ = ("id", "index", "owner", "type", "uses")

    def __init__(self, id_: int, type_: Type, owner: Op | Block, index: int) -> None:
        self.id = id_
        self.type = type_
        self.owner = owner
        self.index = index
        self.uses: list[Use] = []

    @property
    def defining_op(self) -> Op | None:
        """The op this is a result of, or None for a block argument."""
        return self.owner if isinstance(self.owner, Op) else None

    @property
    def is_block_argument(self) -> bool:
        """True if this is an argument of a block."""
        return isinstance(self.owner, Block)

    @property
    def owning_op(self) -> Op:
        """The defining op, or the op around the block of an argument."""
        if isinstance(self.owner, Op):
            return self.owner
        parent = self.owner.parent_op
        if parent is None:
            raise ValueError("the block of this argument belongs to no op")
        return parent

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of a static tensor.

        Raises:
            TypeError: the value is not a tensor with static sizes.
        """
        if isinstance(self.type, TensorType) and self.type.is_static:
            return self.type.shape  # type: ignore[return-value]
        raise TypeError(f"{self.type} has no static shape")

    @property
    def users(self) -> list[Op]:
        """The ops that use the value, newest use first, one entry per use."""
        return [op for op, _ in reversed(self.uses)]

    @property
    def has_one_use(self) -> bool:
        """True if there is exactly one use."""
        return len(self.uses) == 1

    def insert_after(self, op: Op) -> None:
        """Insert an op right after the defining op; for an argument, at the start of its block."""
        owner = self.owner
        if isinstance(owner, Block):
            owner.insert_after(None, op)
        elif owner.parent is not None:
            owner.parent.insert_after(owner, op)

    def replace_all_uses_with(self, new: Value, *, except_op: Op | None = None) -> None:
        """Make every user (but ``except_op``) use ``new``.

        Uses move newest first, which reverses their order, as in MLIR.
        """
        if new.type is not self.type:
            self._forget_kinds()
        if except_op is None:
            for op, number in self.uses:
                op.put_operand(number, new)
            new.uses += self.uses[::-1]
            self.uses = []
            return
        kept_uses: list[Use] = []
        add_use = new.uses.append
        for use in reversed(self.uses):
            op, number = use
            if op is except_op:
                kept_uses.append(use)
                continue
            op.put_operand(number, new)
            add_use(use)
        kept_uses.reverse()
        self.uses = kept_uses

    def move_uses_to(self, new: Value, *, users: Container[int] | None = None, before: Use | None = None) -> None:
        """Make users use ``new``; their uses keep their order.

        Args:
            new: The other value.
            users: The ids of the ops that do; all by default.
            before: The use of the other value before which the uses come; by default, or where it has no such use,
                they come last.
        """
        moved = [use for use in self.uses if users is None or use[0].id in users]
        for op, number in moved:
            if new.type is not self.type:
                op.program.kinds_hold = False
            op.put_operand(number, new)
        if users is None:
            self.clear_uses()
        else:
            self.drop_uses_by(users)
        index = new.uses.index(before) if before is not None and before in new.uses else len(new.uses)
        new.uses[index:index] = moved

    def renew_use(self, op: Op, number: int) -> None:
        """Make a use the newest one."""
        self.uses.remove((op, number))
        self.uses.append((op, number))

    def sort_uses(self, key: Callable[[Use], Any]) -> None:
        """Bring the uses into the order of a key, oldest first."""
        self.uses.sort(key=key)

    def drop_uses_by(self, users: Container[int]) -> None:
        """Forget the uses by ops with some ids, which are about to go."""
        self.uses = [use for use in self.uses if use[0].id not in users]

    def clear_uses(self) -> None:
        """Forget all uses, which are about to go, or to be entered anew."""
        self.uses = []

    def _forget_kinds(self) -> None:
        """Note that users of this value get one of another type."""
        for op, _ in self.uses:
            op.program.kinds_hold = False
            return

    def __repr__(self) -> str:
        kind = "arg" if self.is_block_argument else "result"
        return f"<{kind} {self.index} of {self.owner!r}: {self.type}>"


def drop_uses_together(ops: Collection[Op]) -> None:
    """Leave the use lists of all operands of some ops, which have none from then on.

    The list of uses of each value is visited once, however many of the ops use it.
    """
    ids = {op.id for op in ops}
    for value in {value.id: value for op in ops for value in op.operands}.values():
        value.drop_uses_by(ids)
    for op in ops:
        op.operands = ()


def _remove_use(uses: list[Use], use: Use) -> None:
    """Remove a use from a list; the last use is checked first, as ops are erased from the end."""
    if uses and uses[-1] == use:
        uses.pop()
    else:
        uses.remove(use)


class Op:
    """An operation.

    Attributes:
        id: A number unique in its program.
        name: The full name, for example ``stablehlo.add``.
        operands: The operand values; change them with `set_operand` only.
        results: The result values.
        attributes: Name to attribute; a frontend may decode it on demand.
        regions: The regions; add one with `add_region`.
        parent: The block it stands in, or None.
        function_results: For a function, one value per result, to carry its sharding.
        handle: What the frontend needs to find the op again; None for an op made here.
    """

    __slots__ = (
        "attributes",
        "function_results",
        "handle",
        "id",
        "name",
        "next",
        "operands",
        "parent",
        "prev",
        "program",
        "regions",
        "results",
    )

    def __init__(
        self,
        program: Program,
        name: str,
        operands: Iterable[Value] = (),
        result_types: Iterable[Type] = (),
        attributes: MutableMapping[str, Attribute] | None = None,
        regions: Iterable[Region] = (),
        *,
        register_uses: bool = True,
    ) -> None:
        self.program = program
        self.id = program.next_id()
        self.name = name
        program.op_names.add(name)
        self.operands: Sequence[Value] = tuple(operands)
        # A loop, because most ops have one result, and a comprehension is a function.
        results: list[Value] = []
        for type_ in result_types:
            results.append(Value(program.next_id() if results else self.id, type_, self, len(results)))
        self.results: Sequence[Value] = tuple(results)
        self.attributes: MutableMapping[str, Attribute] = {} if attributes is None else attributes
        # Most ops have none, and an empty tuple takes no memory.
        self.regions: Sequence[Region] = tuple(regions)
        for region in self.regions:
            region.parent = self
        self.parent: Block | None = None
        self.prev: Op | None = None
        self.next: Op | None = None
        self.function_results: Sequence[Value] = ()
        self.handle: Any = None
        if register_uses:
            self.register_uses()

    def register_uses(self) -> None:
        """Enter the operands into the use lists; once, after the ops of the regions did so."""
        for number, value in enumerate(self.operands):
            value.uses.append((self, number))

    @property
    def location(self) -> str:
        """The source location in MLIR's notation, or ""."""
        return self.program.locate(self)

    @property
    def scope(self) -> str:
        """The name of the source location: JAX's name stack (``jit(step)/jvp(layer_3)/mlp/dot_general``), or ""."""
        return self.program.scope_of(self)

    @property
    def parent_op(self) -> Op | None:
        """The op whose region this op stands in."""
        return self.parent.parent_op if self.parent else None

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    def set_operand(self, number: int, value: Value) -> None:
        """Replace an operand, and update the use lists."""
        old = self.operands[number]
        if old.type is not value.type:
            self.program.kinds_hold = False
        _remove_use(old.uses, (self, number))
        self.put_operand(number, value)
        value.uses.append((self, number))

    def replace_operands(self, values: Iterable[Value]) -> None:
        """Use other values, maybe another number of them, with the newest uses."""
        self.drop_uses()
        self.operands = list(values)
        self.register_uses()

    def hand_over_uses(self, successor: Op) -> None:
        """Let an op with the same operands take over the uses of this one, which has no operands from then on.

        Args:
            successor: The op; it has not entered its operands into the use lists.
        """
        for number, value in enumerate(self.operands):
            value.uses[value.uses.index((self, number))] = (successor, number)
        self.operands = ()

    def add_region(self, region: Region) -> Region:
        """Add a region behind the others."""
        if self.parent is not None:
            self.program.index.invalidate()
        region.parent = self
        self.regions = (*self.regions, region)
        return region

    def take_regions(self) -> Sequence[Region]:
        """Return the regions, for another op; this one has none from then on."""
        regions, self.regions = self.regions, ()
        return regions

    def rename(self, name: str) -> None:
        """Become an op of another name with the same attributes, operands and results.

        The uses of the results are in reverse order then, as if they had moved to those of a new op.
        """
        program = self.program
        program.op_names.add(name)
        program.index.rename(self.name, name)
        self.name = name
        kind = getattr(self.attributes, "kind", None)
        if kind is not None:
            self.attributes.kind = kind.of_name(name)  # type: ignore[attr-defined]
        for value in self.results:
            value.uses.reverse()
        if self.handle is not None:
            program.renamed.append(self)

    def drop_uses(self) -> None:
        """Leave the use lists of all operands."""
        for number, value in enumerate(self.operands):
            _remove_use(value.uses, (self, number))

    def put_operand(self, number: int, value: Value) -> None:
        """Replace an operand; the use lists are the caller's to keep right.

        Operands start as a tuple, which a frontend may share, and become a list when the first of them changes.
        """
        operands = self.operands
        if not isinstance(operands, list):
            operands = self.operands = list(operands)
        operands[number] = value

    def erase(self) -> None:
        """Take the op and everything in it out of the program, with the shardings of the values that go.

        Raises:
            ValueError: a result is still used.
        """
        shardings = self.program.shardings
        for value in (*self.results, *self.function_results) if self.function_results else self.results:
            if value.uses:
                raise ValueError(f"{value!r} is still used by {value.uses[-1][0]!r}")
            shardings.pop(value.id, None)
        for region in self.regions:
            for block in region.blocks:
                for value in block.arguments:
                    shardings.pop(value.id, None)
                for op in reversed(list(block.ops)):
                    for value in op.results:
                        value.clear_uses()
                    op.erase()
        if self.operands:
            self.drop_uses()
            self.operands = ()
        if self.parent:
            self.parent.remove(self)

    def walk(self) -> Iterator[Op]:
        """Iterate over this op and all ops inside, each before those in its regions."""
        yield self
        for region in self.regions:
            for block in region.blocks:
                yield from block.walk()

    def __repr__(self) -> str:
        return f"<{self.name} #{self.id}>"


class Block:
    """A list of ops with arguments."""

    __slots__ = ("arguments", "first", "handle", "last", "parent")

    def __init__(self, program: Program, argument_types: Iterable[Type] = ()) -> None:
        self.arguments = [Value(program.next_id(), type_, self, index) for index, type_ in enumerate(argument_types)]
        self.parent: Region | None = None
        self.first: Op | None = None
        self.last: Op | None = None
        self.handle: Any = None

    @property
    def parent_op(self) -> Op | None:
        """The op around this block."""
        return self.parent.parent if self.parent else None

    @property
    def ops(self) -> Iterator[Op]:
        """Iterate over the ops; the op just yielded may be erased or moved."""
        op = self.first
        while op is not None:
            following = op.next
            yield op
            op = following

    def walk(self) -> Iterator[Op]:
        """Iterate over the ops and all ops inside, each before those in its regions.

        The op just given may be erased or moved, and its regions may change.
        """
        # A stack instead of recursion: every pass walks, and a generator per op is most of what that costs.
        op = self.first
        later: list[Op | Block | None] = []
        while True:
            while op is not None:
                following = op.next
                yield op
                if op.regions:
                    later.append(following)
                    later.extend(block for region in reversed(op.regions) for block in reversed(region.blocks))
                    break
                op = following
            if not later:
                return
            top = later.pop()
            op = top.first if isinstance(top, Block) else top

    def list_ops(self) -> list[Op]:
        """Return the ops that `walk` yields as a list, in half the time; no op may change meanwhile."""
        ops: list[Op] = []
        append = ops.append
        op = self.first
        # Where to go on after a block, and the blocks to do before that, the next one last.
        later: list[Op | Block | None] = []
        while True:
            while op is not None:
                append(op)
                if op.regions:
                    later.append(op.next)
                    for region in reversed(op.regions):
                        later.extend(reversed(region.blocks))
                    break
                op = op.next
            if not later:
                return ops
            top = later.pop()
            op = top.first if isinstance(top, Block) else top

    def fill(self, ops: Iterable[Op]) -> None:
        """Put ops that are in no block yet into this block, which is empty, and in no program yet."""
        previous: Op | None = None
        for op in ops:
            op.parent, op.prev = self, previous
            if previous is None:
                self.first = op
            else:
                previous.next = op
            previous = op
        self.last = previous

    @property
    def terminator(self) -> Op | None:
        """The last op."""
        return self.last

    def append(self, op: Op) -> Op:
        """Add an op at the end."""
        return self.insert_after(self.last, op)

    def insert_after(self, anchor: Op | None, op: Op) -> Op:
        """Insert an op after ``anchor``, at the start where that is None."""
        if anchor is not None and anchor.parent is not self:
            raise ValueError(f"{anchor!r} is not in this block")
        following = anchor.next if anchor else self.first
        if not op.regions:
            op.program.index.enter(op.name)
        elif following is None and self is op.program.body:
            op.program.index.append(op)
        else:
            op.program.index.invalidate()
        op.parent, op.prev, op.next = self, anchor, following
        if anchor:
            anchor.next = op
        else:
            self.first = op
        if following:
            following.prev = op
        else:
            self.last = op
        return op

    def insert_before(self, anchor: Op, op: Op) -> Op:
        """Insert an op before ``anchor``."""
        if anchor.parent is not self:
            raise ValueError(f"{anchor!r} is not in this block")
        return self.insert_after(anchor.prev, op)

    def remove(self, op: Op) -> None:
        """Unlink an op; its uses stay."""
        if op.regions:
            op.program.index.invalidate()
        else:
            op.program.index.leave(op.name)
        if op.prev:
            op.prev.next = op.next
        else:
            self.first = op.next
        if op.next:
            op.next.prev = op.prev
        else:
            self.last = op.prev
        op.parent = op.prev = op.next = None

    def __repr__(self) -> str:
        return f"<block of {self.parent_op!r}>"


class Region:
    """A list of blocks."""

    __slots__ = ("blocks", "handle", "parent")

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self.blocks = list(blocks)
        self.parent: Op | None = None
        self.handle: Any = None
        for block in self.blocks:
            block.parent = self

    def replace_blocks(self, blocks: Iterable[Block]) -> None:
        """Have other blocks, which the frontend does not know."""
        self.blocks = list(blocks)
        self.handle = None
        for block in self.blocks:
            block.parent = self

    @property
    def block(self) -> Block:
        """The only block."""
        (block,) = self.blocks
        return block

    def __repr__(self) -> str:
        return f"<region of {self.parent!r}>"
