"""The phases of a kernel as functions of LLVM, each of which a thread of the host's grid runs by itself."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects import arith, builtin, func, llvm, vector
from xdsl.ir import Block, Operation, OpResult, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.kernels.dialect.gpu import BarrierOp, ShuffleOp, check_takes_from_below
from shardy_py.kernels.dialect.memory_ops import ShuffleReduceOp
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.lower.buffer_table import BufferTable, takes_table
from shardy_py.kernels.lower.exchanges import copied_slots, exchanged_words, lane_reduction, slot_name
from shardy_py.kernels.lower.host_loops import LANE, STRIP, strip_width, write_for_last_lane, write_in_strip
from shardy_py.kernels.lower.lane_reductions import LaneReduction, word_type
from shardy_py.kernels.lower.live_threads import live_threads, strips_of
from shardy_py.kernels.lower.llvm import function_arguments, write_op
from shardy_py.kernels.lower.phases import (
    DONE,
    EXCHANGES,
    WAITS,
    Phase,
    Phases,
    block_of,
    is_at_hand,
    split_phases,
    targets,
)
from shardy_py.kernels.lower.writer import FunctionWriter, ModuleWriter
from shardy_py.kernels.passes.base import constant_value
from shardy_py.values import frozen

ID_ARGUMENTS = tuple(f"%{kind}.{dimension}" for kind in ("thread", "block") for dimension in "xyz")
THREAD = "%thread"
ROUND = "%round"
_WARPS = (32, 64)
"""The threads of a warp: those of NVIDIA's devices, and of AMD's for computing."""

_FEW_READS = 4
"""The most reads of a phase that is not worth vectors over threads where these write apart."""

_BOOL = "i1"
_VECTOR = re.compile(r"<(\d+) x (?!i1>)(\w+)>")


@frozen
class Storage:
    """Memory of a block on the host.

    Args:
        name: The name of the pointer to it.
        type: The type of an element.
        count: The number of elements.
    """

    name: str
    type: str
    count: int


@frozen(eq=False)
class HostPhases:
    """The phases of a kernel for the host.

    Args:
        names: The name of each one's function, the first one first.
        exits: The phases that may follow each; `DONE` where threads are done.
        storage: Memory that a block has: tiles, values that are kept, words that lanes exchange.
        barriers: The phases that begin behind a barrier, which all threads of a block reach.
        threads: The number of threads of a block.
        widths: The threads of a strip along x, for each phase.
        live: How many strips of each phase run, and how many threads of each: the others compute what nobody uses.
        straight: The phases without a branch.
        alike: The phases behind which all threads go on alike.
        counting: The phases that are steps of a loop, and are given how many of them there were.
        scalar: The phases whose threads write neighbours that lie apart from those of the next thread.
        exchanges: Whether lanes exchange values, as reductions do.
        reductions: Those over lanes that phases begin with.
        copies: The phases that only hand kept values over to a reduction, which reads them where they are.
    """

    names: tuple[str, ...]
    exits: tuple[tuple[int, ...], ...]
    storage: tuple[Storage, ...]
    barriers: frozenset[int]
    threads: int
    widths: tuple[int, ...]
    live: tuple[tuple[int, int], ...]
    straight: frozenset[int] = frozenset()
    alike: frozenset[int] = frozenset()
    counting: frozenset[int] = frozenset()
    scalar: frozenset[int] = frozenset()
    exchanges: bool = False
    reductions: Mapping[int, LaneReduction] = MappingProxyType({})
    copies: frozenset[int] = frozenset()

    @property
    def parting(self) -> frozenset[int]:
        """Phases after which some warps may be finished while others exchange values."""
        return frozenset(
            number
            for number, exits in enumerate(self.exits)
            if DONE in exits and any(later > 0 and later not in self.barriers for later in exits)
        )

    @property
    def guarded(self) -> frozenset[int]:
        """Phases that finished threads skip: those that may follow a phase in which some threads finish."""
        guarded: set[int] = set()
        pending = [later for number in self.parting for later in self.exits[number]]
        while pending:
            number = pending.pop()
            if number != DONE and number not in guarded:
                guarded.add(number)
                pending += self.exits[number]
        return frozenset(guarded)


def write_phases(
    function: func.FuncOp, module: ModuleWriter, launch: Launch, tiles: Sequence[Storage], *, warp: int
) -> HostPhases:
    """Write the functions of the phases of an entry function.

    Args:
        function: The entry function after the last pass; it is changed.
        module: The text that they become part of.
        launch: The grid.
        tiles: The memory that threads share.
        warp: The threads of a warp.

    Raises:
        UnsupportedError: lanes exchange values in groups that are not whole warps, or by distances that vary.
    """
    phases = split_phases(function)
    name = function.sym_name.data
    threads = launch.threads[0] * launch.threads[1] * launch.threads[2]
    # Behind the last thread there is room for lanes that read beyond it.
    words = exchanged_words(phases, module)
    arrays = dict.fromkeys(item for items in words.values() for item in items)
    lanes = [Storage(item, type_, threads + max(_WARPS)) for item, type_ in arrays]
    slots = [
        Storage(slot_name(number), type_, count * threads + max(_WARPS))
        for number, value in enumerate(phases.slots)
        for count, type_ in [_stored(module.type(value.type))]
    ]
    storage = (*tiles, *slots, *lanes)
    names = tuple(f"{name}.{phase.number}" for phase in phases.phases)
    widths = tuple(_width(phases, phase, launch.threads[0], warp) for phase in phases.phases)
    live = live_threads(function, phases, launch, warp)
    copies = {number: copied_slots(phases, phases.phases[number], module) for number in live.combining}
    for number, kept in copies.items():
        words[number][: len(kept)] = kept
    reductions = {
        number: lane_reduction(phases.phases[number], words[number], combining, module, threads, warp)
        for number, combining in live.combining.items()
    }
    handing_over = {item.number for item in phases.phases if any(copies.get(later) for later in item.exits)}
    for phase, function_name, width in zip(phases.phases, names, widths, strict=True):
        if phase.number in handing_over:
            continue
        writer = _PhaseWriter(function, module, phases, phase, storage, words, reductions, threads, width)
        module.functions.append(writer.text(function_name))
    barriers = frozenset(phase.number for phase in phases.phases if phase.number > 0 and phase.after is None)
    straight = frozenset(phase.number for phase in phases.phases if len(phase.blocks) == 1)
    exits = tuple(phase.exits for phase in phases.phases)
    regrouped = {phase.number for phase in phases.phases if phase.is_regrouped}
    alike = frozenset(phase.number for phase in phases.phases if regrouped.issuperset(phase.exits))
    counting = frozenset(number for number, _ in phases.counters.values())
    strips = tuple(
        strips_of(threads_of_phase, width) for threads_of_phase, width in zip(live.of_phases, widths, strict=True)
    )
    straight |= alike
    scalar = frozenset(phase.number for phase in phases.phases if _writes_neighbours_apart(phase))
    places = (names, exits, storage, barriers, threads, widths, strips)
    exchanges = bool(words)
    return HostPhases(
        *places,
        straight,
        alike,
        counting,
        scalar,
        exchanges=exchanges,
        reductions=reductions,
        copies=frozenset(handing_over),
    )


def _writes_neighbours_apart(phase: Phase) -> bool:
    """Return whether a phase without branches writes elements of a vector one by one into a tile.

    The threads of a column do, each into its own row. Vectors over threads would be written element by element there;
    of two neighbouring elements of one thread LLVM makes one store. That is faster where little is read for them.
    """
    vectors: set[SSAValue] = set()
    ops = list(phase.blocks[0].ops) if len(phase.blocks) == 1 else []
    if sum(isinstance(op, llvm.LoadOp) for op in ops) > _FEW_READS:
        return False
    for op in ops:
        if isinstance(op, llvm.StoreOp) and isinstance(op.ptr.type, llvm.LLVMPointerType):
            value_op = op.value.owner
            in_tile = op.ptr.type.addr_space != builtin.NoneAttr()
            if in_tile and isinstance(value_op, vector.ExtractOp):
                if value_op.vector in vectors:
                    return True
                vectors.add(value_op.vector)
    return False


def _width(phases: Phases, phase: Phase, threads: int, warp: int) -> int:
    """Return the threads of a strip of a phase; where lanes exchanged values they are parts of warps."""
    ops: dict[Operation, None] = {}
    pending = [op for block in phase.blocks for op in block.ops]
    while pending:
        op = pending.pop()
        if op not in ops:
            ops[op] = None
            pending += [value.owner for value in op.operands if value in phases.again and isinstance(value, OpResult)]
    within = constant_value(phase.after.width) if isinstance(phase.after, ShuffleOp) else warp if phase.after else 0
    return strip_width(ops, threads, within=within or 0)


def _stored(type_: str) -> tuple[int, str]:
    """Return how many words a value has in memory, and their type: a byte of a condition, the elements of a vector."""
    count, element = _parts(type_)
    return max(1, count), "i8" if element == _BOOL else element


def _parts(type_: str) -> tuple[int, str]:
    """Return the number and type of the elements of a vector; 0 and the type itself for any other type."""
    match = _VECTOR.fullmatch(type_)
    return (int(match[1]), match[2]) if match else (0, type_)


class _PhaseWriter:
    """The text of a phase while it is written."""

    def __init__(
        self,
        function: func.FuncOp,
        module: ModuleWriter,
        phases: Phases,
        phase: Phase,
        storage: Sequence[Storage],
        words: Mapping[int, Sequence[tuple[str, str]]],
        reductions: Mapping[int, LaneReduction],
        threads: int,
        width: int,
    ) -> None:
        self._function = function
        self._writer = FunctionWriter(module)
        self._phases = phases
        self._phase = phase
        self._storage = storage
        self._words = words
        self._reductions = reductions
        self._threads = threads
        self._width = width
        self._slots = {value: slot_name(number) for number, value in enumerate(phases.slots)}
        self._names: dict[SSAValue, str] = {}
        self._incoming: dict[Block, list[tuple[str, list[list[str]]]]] = {block: [] for block in phase.blocks}

    def text(self, name: str) -> str:
        """Return the function."""
        writer, first = self._writer, self._phase.blocks[0]
        more = [*(f"i32 {item}" for item in ID_ARGUMENTS), *(f"i32 {item}" for item in (THREAD, STRIP, LANE))]
        more += (
            [f"i32 {ROUND}"]
            if any(number == self._phase.number for number, _ in self._phases.counters.values())
            else []
        )
        more += [f"ptr noalias {item.name}" for item in self._storage]
        has_table = takes_table(len(self._function.body.blocks[0].args))
        table = BufferTable(self._function, writer) if has_table else None
        arguments = [table.parameter] if table else function_arguments(self._function, writer, is_entry=True)
        body: dict[Block, list[str]] = {}
        for block in self._phase.blocks:
            for argument in block.args if block is not first else ():
                self._names[argument] = writer.fresh()
        for block in self._phase.blocks:
            writer.lines = []
            if block is first:
                self._begin()
            if table is not None:
                table.load(block)
            self._block(block)
            body[block] = writer.lines
        lines = [f"define internal i32 @{name}({', '.join([*arguments, *more])}) alwaysinline nounwind {{"]
        for block in self._phase.blocks:
            lines += [f"{writer.label(block)}:", *self._phis(block), *body[block]]
        return "\n".join([*lines, "}"])

    def _phis(self, block: Block) -> list[str]:
        """Return the phis of a block; a vector is passed by its elements, as vectors of LLVM cannot hold vectors."""
        phis, joins = [], []
        for number, argument in enumerate(block.args if block is not self._phase.blocks[0] else ()):
            name, type_ = self._names[argument], self._writer.type(argument)
            count, element = _parts(type_)
            names = [f"{name}.{place}" for place in range(count)] if count else [name]
            for place, part_name in enumerate(names):
                parts = ", ".join(f"[ {passed[number][place]}, %{label} ]" for label, passed in self._incoming[block])
                phis.append(f"  {part_name} = phi {element} {parts}")
            partial = "poison"
            for place in range(count):
                next_partial = name if place == count - 1 else f"{name}.to{place}"
                joins.append(
                    f"  {next_partial} = insertelement {type_} {partial}, {element} {names[place]}, i32 {place}"
                )
                partial = next_partial
        return phis + joins

    def _pass(self, block: Block) -> None:
        """Note what a block passes to others, and take vectors apart before it ends."""
        for target, passed in targets(block):
            texts = []
            for value in passed:
                text, type_ = self._writer.get(value), self._writer.type(value)
                count, _ = _parts(type_)
                places = [self._writer.new(f"extractelement {type_} {text}, i32 {place}") for place in range(count)]
                texts.append(places or [text])
            self._incoming[target].append((self._writer.label(block), texts))

    def _begin(self) -> None:
        """Take what lanes exchanged, and what other phases computed and this one does not."""
        if isinstance(self._phase.after, ShuffleOp):
            self._take(self._phase.after)
        elif self._phase.after is not None:
            self._take_reduced(self._phase.after)
        for block in self._phase.blocks:
            for value in dict.fromkeys(value for op in block.ops for value in op.operands):
                if is_at_hand(self._phase, value, block) or value in self._names:
                    continue
                if value in self._phases.again:
                    self._compute_again(value)
                elif not _is_inside(self._phase, value):
                    self._names[value] = self._loaded(value)

    def _compute_again(self, value: SSAValue) -> None:
        """Compute a value, and what it follows from, at the begin of the phase."""
        if not isinstance(value, OpResult) or value in self._names:
            return
        for operand in value.op.operands:
            self._compute_again(operand)
        self._write(value.op)

    def _take(self, op: ShuffleOp) -> None:
        """Read the word of the lane some places further down; the own one where there is none."""
        writer = self._writer
        check_takes_from_below(op)
        distance, warp = (constant_value(value) for value in (op.offset, op.width))
        if warp not in _WARPS or distance is None or not 0 <= distance < warp:
            message = "lanes exchange values in whole warps, by distances that are constant"
            raise UnsupportedError(Diagnostic("host-shuffle", message, op=op.name))
        type_ = writer.type(op.value)
        ((base, _),) = self._words[self._phase.number]
        words = []
        for step in (0, distance):
            number = writer.new(f"add nuw nsw i32 {THREAD}, {step}")
            place = writer.new(f"getelementptr inbounds {type_}, ptr {base}, i32 {number}")
            words.append(writer.new(f"load {type_}, ptr {place}"))
        lane = LANE if self._width == warp else writer.new(f"and i32 {THREAD}, {warp - 1}")
        exists = writer.new(f"icmp ult i32 {lane}, {warp - distance}")
        if self._threads % warp:
            inside = writer.new(f"icmp ult i32 {THREAD}, {max(0, self._threads - distance)}")
            exists = writer.new(f"and i1 {exists}, {inside}")
        self._names[op.value] = words[0]
        self._names[op.result] = writer.new(f"select i1 {exists}, {type_} {words[1]}, {type_} {words[0]}")
        self._names[op.valid] = exists
        for result in op.results:
            self._keep(result)

    def _take_reduced(self, op: ShuffleReduceOp) -> None:
        """Read what a reduction over lanes gives."""
        writer, reduction = self._writer, self._reductions[self._phase.number]
        for result, array, type_ in zip(op.results, reduction.results, reduction.types, strict=True):
            word = word_type(type_)
            place = writer.new(f"getelementptr inbounds {word}, ptr {array}, i32 {THREAD}")
            loaded = writer.new(f"load {word}, ptr {place}")
            self._names[result] = loaded if word == type_ else writer.new(f"trunc {word} {loaded} to {type_}")
            self._keep(result)

    def _block(self, block: Block) -> None:
        for argument in block.args if block is not self._phase.blocks[0] else ():
            self._keep(argument)
        for op in block.ops:
            if op.results and all(value in self._phases.again and value in self._names for value in op.results):
                continue
            self._bind_operands(op, block)
            if op is block.last_op:
                self._pass(block)
            if isinstance(op, WAITS):
                self._wait(op, block)
            elif isinstance(op, func.ReturnOp):
                self._writer.line(f"ret i32 {DONE}")
            else:
                self._write(op)

    def _bind_operands(self, op: Operation, block: Block) -> None:
        for value in op.operands:
            if value in self._phases.counters and not is_at_hand(self._phase, value, block):
                self._writer.bind(value, self._counted(value))
            elif value in self._slots and not is_at_hand(self._phase, value, block) and _is_inside(self._phase, value):
                self._writer.bind(value, self._loaded(value))
            elif value in self._names:
                self._writer.bind(value, self._names[value])

    def _write(self, op: Operation) -> None:
        if isinstance(op, llvm.AddressOfOp) and any(item.name == _tile(op) for item in self._storage):
            self._writer.bind(op.result, _tile(op))
        elif isinstance(op, arith.CmpiOp):
            write_op(op, self._writer)
            write_for_last_lane(op, self._writer, self._width)
        elif not write_in_strip(op, self._writer, self._width):
            write_op(op, self._writer)
        for result in op.results:
            self._names[result] = self._writer.get(result)
            self._keep(result)

    def _wait(self, op: Operation, block: Block) -> None:
        number = self._phases.following[block]
        if not isinstance(op, BarrierOp):
            writer = self._writer
            values = op.arguments if isinstance(op, ShuffleReduceOp) else op.operands[:1]
            for value, (base, word) in zip(values, self._words[number], strict=False):
                text, type_ = writer.get(value), writer.type(value)
                text = text if word == type_ else writer.new(f"zext {type_} {text} to {word}")
                place = writer.new(f"getelementptr inbounds {word}, ptr {base}, i32 {THREAD}")
                writer.line(f"store {word} {text}, ptr {place}")
        self._writer.line(f"ret i32 {number}")

    def _counted(self, value: SSAValue) -> str:
        """Compute the number that a loop goes by from the steps before this one."""
        writer, type_ = self._writer, self._writer.type(value)
        _, counter = self._phases.counters[value]
        steps = ROUND if type_ == "i32" else writer.new(f"zext i32 {ROUND} to {type_}")
        return writer.new(
            f"add nuw nsw {type_} {writer.new(f'mul nuw nsw {type_} {steps}, {counter.step}')}, {counter.start}"
        )

    def _places(self, value: SSAValue) -> tuple[str, list[str]]:
        """Return the type of the words that a value is kept in, and their places: an element of all threads at once."""
        count, type_ = _stored(self._writer.type(value))
        places = []
        for element in range(count):
            number = self._writer.new(f"add nuw nsw i32 {THREAD}, {element * self._threads}") if element else THREAD
            places.append(self._writer.new(f"getelementptr inbounds {type_}, ptr {self._slots[value]}, i32 {number}"))
        return type_, places

    def _keep(self, value: SSAValue) -> None:
        """Store a value that a later phase uses."""
        if value not in self._slots:
            return
        writer, text, value_type = self._writer, self._names[value], self._writer.type(value)
        type_, places = self._places(value)
        words = [text]
        if value_type == _BOOL:
            words = [writer.new(f"zext i1 {text} to i8")]
        elif value_type != type_:
            words = [writer.new(f"extractelement {value_type} {text}, i32 {number}") for number in range(len(places))]
        for word, place in zip(words, places, strict=True):
            writer.line(f"store {type_} {word}, ptr {place}")

    def _loaded(self, value: SSAValue) -> str:
        writer, value_type = self._writer, self._writer.type(value)
        type_, places = self._places(value)
        words = [writer.new(f"load {type_}, ptr {place}") for place in places]
        if value_type == _BOOL:
            return writer.new(f"trunc i8 {words[0]} to i1")
        if value_type == type_:
            return words[0]
        vector_text = "poison"
        for number, word in enumerate(words):
            vector_text = writer.new(f"insertelement {value_type} {vector_text}, {type_} {word}, i32 {number}")
        return vector_text


def _is_inside(phase: Phase, value: SSAValue) -> bool:
    """Return whether a phase computes a value, if only on some of its paths."""
    return block_of(value) in phase.dominators and not (isinstance(value, OpResult) and isinstance(value.op, EXCHANGES))


def _tile(op: llvm.AddressOfOp) -> str:
    return f"%{op.global_name.string_value()}"
