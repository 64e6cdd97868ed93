"""An activation of a function: the values of its threads, and which of them are active."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np
from attrs import field
from xdsl.dialects import func, llvm
from xdsl.ir import Block, Operation, Region, SSAValue

from shardy_py.errors import Diagnostic, UnsupportedError, VerificationError
from shardy_py.kernels.locations import file_line
from shardy_py.kernels.run.memory import Buffer, Pointer, Value
from shardy_py.kernels.run.threads import Threads
from shardy_py.kernels.run.values import chosen, rank_of
from shardy_py.values import frozen

Handler = Callable[["Frame", Any], Sequence[Value]]
"""Handler of an op: the values of its results from a frame and the op."""


BlockRunner = Callable[["Frame", list[Block], Sequence[Value]], list[Value]]
"""Executor of blocks that branch to each other: returned values from a frame, the blocks, the arguments."""


@frozen(eq=False)
class Access:
    """An access to memory by all threads that run an op.

    Args:
        op: The name of the op.
        memory: The name of the memory.
        is_shared: Whether it belongs to a block.
        is_write: Whether it is written.
        threads: The numbers of the threads in their block.
        places: The first byte of each thread.
        width: The bytes per thread.
    """

    op: str
    memory: str
    is_shared: bool
    is_write: bool
    threads: Any
    places: Any
    width: int


@frozen(eq=False)
class LoadedKernel:
    """A module that is run.

    Args:
        functions: Its functions by name.
        handlers: What runs each op, by its name.
        run_blocks: What runs blocks that branch to each other.
        stage: The stage that the module is of, for errors.
        globals: The constants of the module by name.
        constants: The values of constants that were met.
        accesses: Where accesses to memory are recorded; None to record none.
        findings: Where faults are recorded that do not keep the kernel from running on; None to end with the first.
    """

    functions: Mapping[str, func.FuncOp]
    handlers: Mapping[str, Handler]
    run_blocks: BlockRunner
    stage: str
    globals: Mapping[str, llvm.GlobalOp] = field(factory=dict)
    constants: dict[Operation, Value] = field(factory=dict)
    accesses: list[Access] | None = None
    findings: dict[tuple[Operation, str], Diagnostic] | None = None


@frozen(eq=False)
class Chunk:
    """Blocks that run at once.

    Args:
        kernel: The kernel.
        blocks: The number of blocks.
        shared: The memory that each op allocated.
        atomics: Atomic updates that are still to be made.
    """

    kernel: LoadedKernel
    blocks: int
    shared: dict[Operation, Buffer] = field(factory=dict)
    atomics: list[Any] = field(factory=list)


@final
class Frame:
    """Values of one activation, for all threads at once.

    Args:
        chunk: The blocks that run.
        threads: The threads of this frame.
        mask: Which are active, or None for all.

    Attributes:
        merges: Whether a value that is bound again keeps what threads that are not active had.
    """

    def __init__(self, chunk: Chunk, threads: Threads, mask: Any = None) -> None:
        self.chunk = chunk
        self.threads = threads
        self.mask = mask
        self._values: dict[SSAValue, Value] = {}
        self.merges = False

    @property
    def kernel(self) -> LoadedKernel:
        """The kernel."""
        return self.chunk.kernel

    def get(self, value: SSAValue) -> Any:
        """Return the value of all threads, or the one that they have in common."""
        return self._values[value]

    def gets(self, values: Sequence[SSAValue]) -> list[Any]:
        """Return several values."""
        return [self._values[value] for value in values]

    def bind(self, value: SSAValue, content: Value) -> None:
        """Bind a value of the program to what active threads hold."""
        if self.merges and self.mask is not None and value in self._values:
            content = self.merged(self.mask, content, self._values[value], value)
        self._values[value] = content

    def merged(self, condition: Any, then: Value, otherwise: Value, typed: SSAValue) -> Value:
        """Return one of two values by a condition per thread.

        Raises:
            UnsupportedError: they are different tensors.
        """
        if isinstance(then, tuple) and isinstance(otherwise, tuple):
            return tuple(chosen(condition, *pair) for pair in zip(then, otherwise, strict=True))
        if isinstance(then, Pointer) and isinstance(otherwise, Pointer):
            buffer = self.merged(condition, then.buffer, otherwise.buffer, typed)
            assert isinstance(buffer, Buffer)
            return Pointer(buffer, chosen(condition, then.offset, otherwise.offset, 0))
        if not isinstance(then, Buffer) and not isinstance(otherwise, Buffer):
            return chosen(condition, then, otherwise, rank_of(typed.type))
        if isinstance(then, Buffer) and isinstance(otherwise, Buffer) and then.memory is otherwise.memory:
            return then
        message = "threads choose between tensors in different memory"
        raise UnsupportedError(Diagnostic("run-tensor-choice", message, self.kernel.stage))

    def active(self, condition: Any = True) -> Any:
        """Return active threads for which a condition holds: a mask, or None for all threads."""
        if np.ndim(condition) == 0:
            return self.mask if condition else np.zeros(self.threads.count, bool)
        active_mask = condition if self.mask is None else self.mask & condition
        return None if active_mask.all() else active_mask

    def is_any(self, mask: Any) -> bool:
        """Return whether a mask has a thread."""
        return mask is None or bool(mask.any())

    @contextmanager
    def under(self, mask: Any) -> Iterator[None]:
        """Let only some threads be active."""
        outer, self.mask = self.mask, mask
        try:
            yield
        finally:
            self.mask = outer

    def execute(self, op: Operation) -> None:
        """Run an op and bind its results."""
        handler = self.kernel.handlers.get(op.name)
        if handler is None:
            hint = "stages before the lowering to LLVM can be run"
            message = "the interpreter of kernels does not know the op"
            raise UnsupportedError(Diagnostic("run-unknown-op", message, self.kernel.stage, op.name, hint))
        for result, content in zip(op.results, handler(self, op), strict=True):
            self.bind(result, content)

    def run(self, region: Region, arguments: Sequence[Value] = ()) -> list[Value]:
        """Run a region and return what its terminator gives."""
        blocks = list(region.blocks)
        if len(blocks) == 1:
            terminator = self.run_block(blocks[0], arguments)
            return self.gets(terminator.operands)
        return self.kernel.run_blocks(self, blocks, arguments)

    def run_block(self, block: Block, arguments: Sequence[Value]) -> Operation:
        """Run a block and return its terminator."""
        for argument, content in zip(block.args, arguments, strict=True):
            self.bind(argument, content)
        terminator = block.last_op
        assert terminator is not None
        for op in block.ops:
            if op is not terminator:
                self.execute(op)
        return terminator

    def call(self, name: str, arguments: Sequence[Value], op: Operation) -> list[Value]:
        """Run a function.

        Raises:
            VerificationError: the module has no such function, or declares it only.
        """
        function = self.kernel.functions.get(name)
        if function is None or not function.body.blocks:
            message = f"the module {'has no function' if function is None else 'only declares the function'} {name!r}"
            hint = "give it a body; those of XLA's library, such as xla.exp.f64 of one f64, need none"
            location = file_line(op) or self.kernel.stage
            raise VerificationError(Diagnostic("run-unknown-function", message, location, op.name, hint))
        return Frame(self.chunk, self.threads, self.mask).run(function.body, arguments)

    def require(self, condition: Any, op: Operation, code: str, message: str | Callable[[int], str]) -> None:
        """Check that a condition holds for all active threads.

        Args:
            condition: The condition, per thread or for all.
            op: The op.
            code: The code of the error.
            message: What is wrong, or a function that says it of the thread at a position.

        Raises:
            VerificationError: it does not; the error names thread, op and stage.
        """
        if np.all(condition):
            return
        wrong = ~np.broadcast_to(condition, (self.threads.count,))
        if self.mask is not None:
            wrong = wrong & self.mask
        if wrong.any():
            position = int(np.argmax(wrong))
            self.report(position, op, code, message if isinstance(message, str) else message(position))

    def report(self, position: int, op: Operation, code: str, message: str) -> None:
        """Record a fault of a thread, the first one of an op and code; or end with it.

        Raises:
            VerificationError: faults are not recorded.
        """
        error, findings = self.error(position, op, code, message), self.kernel.findings
        if findings is None:
            raise error
        findings.setdefault((op, code), error.diagnostics[0])

    def error(self, position: int, op: Operation, code: str, message: str) -> VerificationError:
        """Return the error of a thread: it names thread, op and stage, and the line of the op in its file."""
        stage = self.kernel.stage
        text = f"{self.threads.name(position)}: {message}" + (f", at stage {stage}" if stage else "")
        return VerificationError(Diagnostic(code, text, file_line(op) or stage, op.name))
