"""The phases of a kernel as functions of LLVM, each of which a thread of the host's grid runs by itself."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, llvm
from xdsl.ir import Block, Operation, OpResult, SSAValue

from shardy_py.emitters.dialect.gpu import BarrierOp, ShuffleOp
from shardy_py.emitters.launch.grid import Launch
from shardy_py.emitters.lower.llvm import function_arguments, write_op
from shardy_py.emitters.lower.phases import DONE, WAITS, Phase, Phases, block_of, is_at_hand, split_phases, targets
from shardy_py.emitters.lower.strips import LANE, STRIP, strip_width, write_in_strip
from shardy_py.emitters.lower.writer import FunctionWriter, ModuleWriter
from shardy_py.emitters.passes.base import constant_value
from shardy_py.errors import Diagnostic, UnsupportedError
from shardy_py.values import frozen

ID_ARGUMENTS = tuple(f"%{kind}.{dimension}" for kind in ("thread", "block") for dimension in "xyz")
THREAD = "%thread"
_WARP = 32
_BOOL = "i1"


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
    """

    names: tuple[str, ...]
    exits: tuple[tuple[int, ...], ...]
    storage: tuple[Storage, ...]
    barriers: frozenset[int]
    threads: int
    widths: tuple[int, ...]

    @property
    def parting(self) -> frozenset[int]:
        """Phases behind which some warps may be done while others exchange values."""
        return frozenset(
            number
            for number, exits in enumerate(self.exits)
            if DONE in exits and any(later > 0 and later not in self.barriers for later in exits)
        )

    @property
    def guarded(self) -> frozenset[int]:
        """Phases that threads which are done do not run: those that may follow a parting."""
        found: set[int] = set()
        pending = [later for number in self.parting for later in self.exits[number]]
        while pending:
            number = pending.pop()
            if number != DONE and number not in found:
                found.add(number)
                pending += self.exits[number]
        return frozenset(found)


def write_phases(function: func.FuncOp, module: ModuleWriter, launch: Launch, tiles: Sequence[Storage]) -> HostPhases:
    """Write the functions of the phases of an entry function.

    Args:
        function: The entry function after the last pass; it is changed.
        module: The text that they become part of.
        launch: The grid.
        tiles: The memory that threads share.

    Raises:
        UnsupportedError: lanes exchange values in groups that are no whole warps, or by distances that vary.
    """
    phases = split_phases(function)
    name = function.sym_name.data
    threads = launch.threads[0] * launch.threads[1] * launch.threads[2]
    # Behind the last thread there is room for lanes that read beyond it.
    lanes = [
        Storage(f"%lanes{phase.number}", module.type(phase.after.value.type), threads + _WARP)
        for phase in phases.phases
        if phase.after is not None
    ]
    kept = [
        Storage(f"%kept{number}", _stored(module.type(value.type)), threads)
        for number, value in enumerate(phases.slots)
    ]
    storage = (*tiles, *kept, *lanes)
    names = tuple(f"{name}.{phase.number}" for phase in phases.phases)
    widths = tuple(_width(phases, phase, launch.threads[0]) for phase in phases.phases)
    for phase, own, width in zip(phases.phases, names, widths, strict=True):
        module.functions.append(_PhaseWriter(function, module, phases, phase, storage, threads, width).text(own))
    barriers = frozenset(phase.number for phase in phases.phases if phase.number > 0 and phase.after is None)
    return HostPhases(names, tuple(phase.exits for phase in phases.phases), storage, barriers, threads, widths)


def _width(phases: Phases, phase: Phase, threads: int) -> int:
    """Return the threads of a strip of a phase; where lanes exchanged values they are parts of warps."""
    found: dict[Operation, None] = {}
    pending = [op for block in phase.blocks for op in block.ops]
    while pending:
        op = pending.pop()
        if op not in found:
            found[op] = None
            pending += [value.owner for value in op.operands if value in phases.again and isinstance(value, OpResult)]
    return strip_width(found, threads, within=_WARP if phase.after is not None else 0)


def _stored(type_: str) -> str:
    """Return the type that a value has in memory: conditions take a byte."""
    return "i8" if type_ == _BOOL else type_


class _PhaseWriter:
    """The text of a phase while it is written."""

    def __init__(
        self,
        function: func.FuncOp,
        module: ModuleWriter,
        phases: Phases,
        phase: Phase,
        storage: Sequence[Storage],
        threads: int,
        width: int,
    ) -> None:
        self._function = function
        self._writer = FunctionWriter(module)
        self._phases = phases
        self._phase = phase
        self._storage = storage
        self._threads = threads
        self._width = width
        self._slots = {value: f"%kept{number}" for number, value in enumerate(phases.slots)}
        self._own: dict[SSAValue, str] = {}
        self._incoming: dict[Block, list[tuple[str, list[str]]]] = {block: [] for block in phase.blocks}

    def text(self, name: str) -> str:
        """Return the function."""
        writer, first = self._writer, self._phase.blocks[0]
        more = [*(f"i32 {item}" for item in ID_ARGUMENTS), *(f"i32 {item}" for item in (THREAD, STRIP, LANE))]
        more += [f"ptr noalias {item.name}" for item in self._storage]
        arguments = function_arguments(self._function, writer, is_entry=True)
        body: dict[Block, list[str]] = {}
        for block in self._phase.blocks:
            for argument in block.args if block is not first else ():
                self._own[argument] = writer.fresh()
        for block in self._phase.blocks:
            writer.lines = []
            if block is first:
                self._begin()
            self._block(block)
            body[block] = writer.lines
        lines = [f"define internal i32 @{name}({', '.join([*arguments, *more])}) alwaysinline nounwind {{"]
        for block in self._phase.blocks:
            lines += [f"{writer.label(block)}:", *self._phis(block), *body[block]]
        return "\n".join([*lines, "}"])

    def _phis(self, block: Block) -> list[str]:
        found = []
        for number, argument in enumerate(block.args if block is not self._phase.blocks[0] else ()):
            parts = ", ".join(f"[ {passed[number]}, %{label} ]" for label, passed in self._incoming[block])
            found.append(f"  {self._own[argument]} = phi {self._writer.type(argument)} {parts}")
        return found

    def _begin(self) -> None:
        """Take what lanes exchanged, and what other phases computed and this one does not."""
        if self._phase.after is not None:
            self._take(self._phase.after)
        for block in self._phase.blocks:
            for value in dict.fromkeys(value for op in block.ops for value in op.operands):
                if is_at_hand(self._phase, value, block) or value in self._own:
                    continue
                if value in self._phases.again:
                    self._compute_again(value)
                elif not _is_inside(self._phase, value):
                    self._own[value] = self._loaded(value)

    def _compute_again(self, value: SSAValue) -> None:
        """Compute a value, and what it follows from, at the begin of the phase."""
        if not isinstance(value, OpResult) or value in self._own:
            return
        for operand in value.op.operands:
            self._compute_again(operand)
        self._write(value.op)

    def _take(self, op: ShuffleOp) -> None:
        """Read the word of the lane some places further down; the own one where there is none."""
        writer = self._writer
        distance, width = (constant_value(value) for value in (op.offset, op.width))
        if width != _WARP or distance is None or not 0 <= distance < _WARP:
            message = "lanes exchange values in whole warps, by distances that are constant"
            raise UnsupportedError(Diagnostic("host-shuffle", message, op=op.name))
        type_ = writer.type(op.value)
        base = f"%lanes{self._phase.number}"
        words = []
        for step in (0, distance):
            number = writer.new(f"add nuw nsw i32 {THREAD}, {step}")
            place = writer.new(f"getelementptr inbounds {type_}, ptr {base}, i32 {number}")
            words.append(writer.new(f"load {type_}, ptr {place}"))
        lane = LANE if self._width == _WARP else writer.new(f"and i32 {THREAD}, {_WARP - 1}")
        exists = writer.new(f"icmp ult i32 {lane}, {_WARP - distance}")
        if self._threads % _WARP:
            inside = writer.new(f"icmp ult i32 {THREAD}, {max(0, self._threads - distance)}")
            exists = writer.new(f"and i1 {exists}, {inside}")
        self._own[op.result] = writer.new(f"select i1 {exists}, {type_} {words[1]}, {type_} {words[0]}")
        self._own[op.valid] = exists
        for result in op.results:
            self._keep(result)

    def _block(self, block: Block) -> None:
        for argument in block.args if block is not self._phase.blocks[0] else ():
            self._keep(argument)
        for op in block.ops:
            if op.results and all(value in self._phases.again and value in self._own for value in op.results):
                continue
            self._bind_operands(op, block)
            if isinstance(op, WAITS):
                self._wait(op, block)
            elif isinstance(op, func.ReturnOp):
                self._writer.line(f"ret i32 {DONE}")
            else:
                self._write(op)
        for target, passed in targets(block):
            texts = [self._writer.get(value) for value in passed]
            self._incoming[target].append((self._writer.label(block), texts))

    def _bind_operands(self, op: Operation, block: Block) -> None:
        for value in op.operands:
            if value in self._slots and not is_at_hand(self._phase, value, block) and _is_inside(self._phase, value):
                self._writer.bind(value, self._loaded(value))
            elif value in self._own:
                self._writer.bind(value, self._own[value])

    def _write(self, op: Operation) -> None:
        if isinstance(op, llvm.AddressOfOp) and any(item.name == _tile(op) for item in self._storage):
            self._writer.bind(op.result, _tile(op))
        elif not write_in_strip(op, self._writer, self._width):
            write_op(op, self._writer)
        for result in op.results:
            self._own[result] = self._writer.get(result)
            self._keep(result)

    def _wait(self, op: Operation, block: Block) -> None:
        number = self._phases.following[block]
        if isinstance(op, ShuffleOp):
            writer = self._writer
            type_ = writer.type(op.value)
            place = writer.new(f"getelementptr inbounds {type_}, ptr %lanes{number}, i32 {THREAD}")
            writer.line(f"store {type_} {writer.get(op.value)}, ptr {place}")
        else:
            assert isinstance(op, BarrierOp)
        self._writer.line(f"ret i32 {number}")

    def _place(self, value: SSAValue) -> tuple[str, str]:
        type_ = _stored(self._writer.type(value))
        place = self._writer.new(f"getelementptr inbounds {type_}, ptr {self._slots[value]}, i32 {THREAD}")
        return type_, place

    def _keep(self, value: SSAValue) -> None:
        """Store a value that a later phase uses."""
        if value not in self._slots:
            return
        type_, place = self._place(value)
        text = self._own[value]
        if self._writer.type(value) == _BOOL:
            text = self._writer.new(f"zext i1 {text} to i8")
        self._writer.line(f"store {type_} {text}, ptr {place}")

    def _loaded(self, value: SSAValue) -> str:
        type_, place = self._place(value)
        found = self._writer.new(f"load {type_}, ptr {place}")
        return self._writer.new(f"trunc i8 {found} to i1") if self._writer.type(value) == _BOOL else found


def _is_inside(phase: Phase, value: SSAValue) -> bool:
    """Return whether a phase computes a value, if only on some of its paths."""
    return block_of(value) in phase.dominators and not (isinstance(value, OpResult) and isinstance(value.op, ShuffleOp))


def _tile(op: llvm.AddressOfOp) -> str:
    return f"%{op.global_name.string_value()}"
