"""The C++ Shardy of jaxlib as an oracle, in a worker process that survives its crashes.

The C++ code may abort or never return on some inputs, so it runs in a child process, which is started again after
that. Only jaxlib is needed.

>>> from shardy_py.oracle.reference import full_pipeline
>>> full_pipeline("sdy-basic-propagate,sdy-sink-data-flow-edges")
'builtin.module(sdy-basic-propagate,func.func(sdy-sink-data-flow-edges))'
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from types import TracebackType
from typing import Literal, Self

from shardy_py.support.processes.child import Child, ChildDied, ChildError, ChildTimeout
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
_WORKER = "shardy_py.oracle.reference_worker"

Kind = Literal["ok", "error", "crash", "timeout"]


@frozen
class ReferenceOutcome:
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
        self._child: Child | None = None
        self._served = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def run(self, text: str, pipeline: str = "", *, timeout: float | None = None) -> ReferenceOutcome:
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
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def _request(self, request: dict[str, str], timeout: float) -> ReferenceOutcome:
        if self._served >= self.recycle:
            self.close()
        child = self._child or self._start()
        try:
            answer = json.loads(child.ask(json.dumps(request).encode(), seconds=timeout))
        except ChildTimeout as error:
            self._child = None
            return ReferenceOutcome("timeout", str(error), error.stderr)
        except ChildDied as error:
            self._child = None
            return ReferenceOutcome("crash", str(error), error.stderr)
        self._served += 1
        return ReferenceOutcome(answer["kind"], answer["text"], child.take_stderr(), answer["stage"])

    def _start(self) -> Child:
        python = "" if self.python == sys.executable else self.python
        child = Child(_WORKER, python=python)
        try:
            child.ask(b"", seconds=_START_SECONDS)
        except ChildError as error:
            raise RuntimeError(f"the reference does not start (is jaxlib installed?): {error}") from None
        child.take_stderr()
        self._child, self._served = child, 0
        return child
