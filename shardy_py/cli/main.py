"""The entry point of ``shardy``; everything else is imported when it is needed."""

from __future__ import annotations

import atexit
import gc
import sys
from importlib.util import find_spec

from shardy_py.cli.exit_codes import INTERRUPTED

_NEEDED = ("click", "rich")


def main() -> None:
    """Run the command line; say what to install where its libraries are missing."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        sys.exit(_refuse(missing))
    skip_last_collections()
    # Modules and rules live as long as the process: `make_registry` turns the collector on when all are there.
    gc.disable()
    try:
        from shardy_py.cli.app import shardy
        from shardy_py.cli.streams import standard_streams

        with standard_streams():
            shardy(prog_name="shardy")
    except KeyboardInterrupt:
        # A command that has begun ends itself, with a message.
        sys.exit(INTERRUPTED)
    finally:
        gc.enable()


def skip_last_collections() -> None:
    """Let the process end without looking for garbage in all that it has, a sixth of a short command.

    Triton, which comes with PyTorch, warns of all its types that are left.
    """
    atexit.register(lambda: None if "triton" in sys.modules else gc.freeze())


def _refuse(missing: list[str]) -> int:
    names = " and ".join(missing)
    print(f"shardy: error: the command line needs {names}: pip install 'shardy_py[cli]'", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
