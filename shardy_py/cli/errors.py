"""Errors of the package as messages: on stderr, exit code 2, no traceback."""

from __future__ import annotations

import sys
from typing import Any

import click

from shardy_py.errors import ShardyError


class ErrorsAsMessages(click.Group):
    """A group of commands whose errors end the run with a message."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except ShardyError as error:
            for diagnostic in error.diagnostics:
                click.echo(str(diagnostic), err=True)
        except BrokenPipeError:
            # The reader of our output went away, for example `| head`; the interpreter must not flush into it again.
            sys.stdout = None
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            click.echo(f"{place}error: {error.strerror or error} [file]", err=True)
        ctx.exit(2)
