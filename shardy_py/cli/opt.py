"""The entry point of ``shardy-opt``; everything else is imported when it is needed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from shardy_py.cli.main import begin_process, end_process, report_interrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``shardy-opt`` and return its exit code.

    Args:
        arguments: The command line; by default that of the process, which is then the command's own.
    """
    is_process = arguments is None
    try:
        if is_process:
            begin_process()
        from shardy_py.cli.opt_passes import run_command
        from shardy_py.cli.streams import standard_streams

        with standard_streams():
            return run_command(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        return report_interrupt()
    finally:
        if is_process:
            end_process()


if __name__ == "__main__":
    sys.exit(main())
