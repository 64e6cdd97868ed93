"""`shardy-opt` in this process, as the tool of the runner of lit files, which would start a process per part."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from shardy_py.cli.opt import main


def run_tool(tool: Sequence[str], text: str, passes: Sequence[tuple[str, str]], split: bool) -> tuple[int, str, str]:
    """Return the exit code, the output and the messages of a run; stands for the runner's function of this name."""
    flags = [f"-{name}={options}" if options else f"-{name}" for name, options in passes]
    with TemporaryDirectory() as folder:
        path = Path(folder, "module.mlir")
        path.write_text(text)
        output, messages = io.StringIO(), io.StringIO()
        with redirect_stdout(output), redirect_stderr(messages):
            code = main([*["-split-input-file"] * split, *flags, str(path)])
    return code, output.getvalue(), messages.getvalue()
