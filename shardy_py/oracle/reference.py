"""The C++ Shardy of jaxlib as an oracle, in a worker process that survives its crashes.

The C++ code may abort or never return on some inputs, so it runs in a child process, which is started again after
that. Only jaxlib is needed.

>>> from shardy_py.oracle.reference import full_pipeline
>>> full_pipeline("sdy-basic-propagate,sdy-sink-data-flow-edges")
'builtin.module(sdy-basic-propagate,func.func(sdy-sink-data-flow-edges))'
"""

from __future__ import annotations

import json
import os
import re
import select
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, Self

from shardy_py.crashes import describe_crash
from shardy_py.oracle import reference_worker
from shardy_py.values import frozen

FUNCTION_PASSES = frozenset(
    {
        "sdy-constant-or-scalar-merger",
        "sdy-drop-sharding-rules",
        "sdy-explicit-gather-scatter-batching",
        "sdy-insert-explicit-reshards",
        "sdy-pad-for-divisibility",
        "sdy-populate-op-sharding-rules",
        "sdy-remove-all-gather-reduce-scatter-for-cmv1",
        "sdy-reshard-to-collectives",
        "sdy-resolve-single-device-sharding",
        "sdy-sharding-constraint-to-reshard",
        "sdy-sink-data-flow-edges",
        "sdy-sink-func-data-flow-edges",
        "sdy-verify-unreduced-axes",
    }
)
"""Passes that run on functions, so they are nested in ``func.func(...)``."""

_START_SECONDS = 120.0
_LONGEST_WAIT = 1e9

Kind = Literal["ok", "error", "crash", "timeout"]


@frozen
class Outcome:
    """Outcome of the reference on one module.

    Args:
        kind: ``ok``; ``error`` (a diagnostic); ``crash`` (the process died); ``timeout``.
        text: The printed module, or what went wrong.
        stderr: What the passes wrote to standard error, mostly warnings.
        stage: Of an error: ``parse``, ``pipeline``, ``run`` or ``print``.
    """

    kind: Kind
    text: str
    stderr: str = ""
    stage: str = ""

    @property
    def ok(self) -> bool:
        """True if there is an output module."""
        return self.kind == "ok"


def split_passes(pipeline: str) -> list[str]:
    """Return the passes of a comma-separated list, each with its options."""
    passes, depth, current = [], 0, ""
    for char in pipeline:
        depth += (char in "({") - (char in ")}")
        if char == "," and depth == 0:
            passes.append(current)
            current = ""
        else:
            current += char
    passes.append(current)
    return [item.strip().lstrip("-") for item in passes if item.strip()]


def full_pipeline(pipeline: str) -> str:
    """Return a pass list in the anchored form that MLIR's pass manager parses; "" stays ""."""
    if not pipeline.strip() or pipeline.lstrip().startswith(("builtin.module(", "any(")):
        return pipeline.strip()
    nested = []
    for item in split_passes(pipeline):
        name = re.split(r"[{(]", item, maxsplit=1)[0]
        nested.append(f"func.func({item})" if name in FUNCTION_PASSES else item)
    return f"builtin.module({','.join(nested)})"


class Reference:
    """Runs upstream's passes; a context manager, started on first use.

    Args:
        timeout: Seconds that one run may take.
        recycle: Runs after which the worker is replaced, to bound its memory.
        python: The interpreter to use; it needs jaxlib.
    """

    def __init__(self, *, timeout: float = 30.0, recycle: int = 2000, python: str = sys.executable) -> None:
        self.timeout = timeout
        self.recycle = recycle
        self.python = python
        self.counts: Counter[str] = Counter()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._served = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def run(self, text: str, pipeline: str = "", *, timeout: float | None = None) -> Outcome:
        """Parse a module, run a pass pipeline over it and print it.

        Args:
            text: The module.
            pipeline: Comma-separated passes, or a full ``builtin.module(...)`` string; "" only verifies and prints.
            timeout: Seconds this run may take, where not the usual number.
        """
        outcome = self._request({"text": text, "pipeline": full_pipeline(pipeline)}, timeout or self.timeout)
        self.counts[outcome.kind] += 1
        return outcome

    def close(self) -> None:
        """End the worker."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            if pipe:
                _close(pipe)
        self._process = None

    def _request(self, request: dict[str, str], timeout: float) -> Outcome:
        if self._served >= self.recycle:
            self.close()
        process = self._process or self._start()
        data = json.dumps(request).encode("ascii")
        try:
            assert process.stdin is not None
            process.stdin.write(struct.pack("<I", len(data)) + data)
            process.stdin.flush()
            answer = self._read_message(process, time.monotonic() + timeout)
        except TimeoutError:
            stderr = self._read_stderr()
            self.close()
            return Outcome("timeout", f"no answer within {timeout:g} seconds", stderr)
        except (EOFError, BrokenPipeError):
            process.wait()
            stderr = self._read_stderr()
            self.close()
            return Outcome("crash", describe_crash(process.returncode, stderr), stderr)
        self._served += 1
        return Outcome(answer["kind"], answer["text"], self._read_stderr(), answer["stage"])  # type: ignore[arg-type]

    def _start(self) -> subprocess.Popen[bytes]:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the worker)
        self._process = subprocess.Popen(
            [self.python, str(Path(reference_worker.__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        self._served = 0
        try:
            self._read_message(self._process, time.monotonic() + _START_SECONDS)
        except (EOFError, TimeoutError):
            stderr = self._read_stderr()
            self.close()
            raise RuntimeError(f"the reference does not start (is jaxlib installed?): {stderr[-2000:]}") from None
        return self._process

    def _read_message(self, process: subprocess.Popen[bytes], deadline: float) -> dict[str, str]:
        size = struct.unpack("<I", _read(process, 4, deadline))[0]
        message: dict[str, str] = json.loads(_read(process, size, deadline))
        return message

    def _read_stderr(self) -> str:
        """Return what was written since the last call."""
        assert self._stderr is not None
        self._stderr.seek(0)
        text = self._stderr.read().decode("utf-8", "replace")
        if text:
            self._stderr.seek(0)
            self._stderr.truncate()
        return text


def _read(process: subprocess.Popen[bytes], size: int, deadline: float) -> bytes:
    assert process.stdout is not None
    descriptor, data = process.stdout.fileno(), bytearray()
    while len(data) < size:
        left = deadline - time.monotonic()
        # Longer ones are no times of the platform.
        if not left > 0 or not select.select([descriptor], [], [], min(left, _LONGEST_WAIT))[0]:
            raise TimeoutError
        part = os.read(descriptor, size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except BrokenPipeError:  # a request that the dead worker never read
        return
