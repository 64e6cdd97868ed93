"""Readers of files of unknown origin, each in a process of its own.

Libraries that read programs trust what they read: some files make them abort, run code, read what is not theirs or ask
for all memory there is. A reader answers with data that this process can read without any of that. Its time and memory
are bounded, and it may neither write files, start processes nor open connections.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from attrs import asdict

from shardy_py.errors import Diagnostic, ParseError, ShardyError, UnsupportedError, VerificationError
from shardy_py.support.processes.child import ChildDied, ChildTimeout, ask_once, find_cause, name_exit
from shardy_py.support.processes.serve import ShowStep, bound_memory, serve
from shardy_py.support.texts import as_error
from shardy_py.values import frozen

_LEAST_MEMORY = 16 * 1024**3
_MEMORY_PER_BYTE = 64
_ERRORS: dict[str, type[ShardyError]] = {
    item.__name__: item for item in (ParseError, UnsupportedError, VerificationError)
}
_REFUSED_EVENTS = (
    "ctypes.dlopen",
    "os.chflags os.chmod os.chown os.link os.lockf os.mkdir os.remove os.rename os.rmdir os.setxattr os.symlink",
    "os.truncate os.utime shutil.rmtree os.exec os.fork os.forkpty os.kill os.posix_spawn os.spawn os.startfile",
    "os.system pickle.find_class pty.spawn signal.pthread_kill subprocess.Popen",
    "socket.bind socket.connect socket.getaddrinfo socket.sendmsg socket.sendto sqlite3.connect",
)
_REFUSED = frozenset(" ".join(_REFUSED_EVENTS).split())
"""Events of Python's audit that no reader needs: they have effects outside of its process, or build any object."""
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@frozen
class Reader:
    """A library that reads files, in a process of its own.

    Args:
        worker: The module that the process runs; its main function calls `answer_reader`.
        name: The words for it: ``MLIR's parser``.
        subject: The words for what it reads: ``module``.
        seconds: The time that it may take.
    """

    worker: str
    name: str
    subject: str
    seconds: float = 600


def read_isolated(reader: Reader, data: bytes, name: str) -> bytes:
    """Return the answer of a reader to the bytes of a file.

    Args:
        reader: The reader.
        data: The bytes.
        name: What locations call them.

    Raises:
        ParseError: the bytes cannot be read, or they end the process or use up its time.
        ShardyError: the error of the reader.
    """
    try:
        answer = ask_once(reader.worker, _with_head(name, data), seconds=reader.seconds)
    except ChildTimeout:
        message = f"{reader.name} did not end within {reader.seconds:g} seconds"
        raise ParseError(Diagnostic("parser-timeout", message, name)) from None
    except ChildDied as error:
        cause = find_cause(error.stderr)
        reason = f"{name_exit(error.code)}{f': {cause}' if cause else ''}"
        message = f"{reader.name} aborts on this {reader.subject} ({reason})"
        raise ParseError(Diagnostic("parser-aborted", message, name)) from None
    except OSError as error:
        message = f"the process that parses cannot be started: {error.strerror or error}"
        raise UnsupportedError(Diagnostic("no-process", message, name)) from None
    problems, content = _split_head(answer)
    if problems:
        class_ = _ERRORS.get(problems["class"], ParseError)
        raise class_(*(Diagnostic(**item) for item in problems["diagnostics"]))
    return content


def answer_reader(prepare: Callable[[bytes], None], read: Callable[[bytes, str], bytes]) -> None:
    """Serve the reading requests of the parent, as the worker of a reader.

    Args:
        prepare: Imports all that the bytes need, before the process gives up its rights.
        read: Returns what is made of the bytes of a file with a name.
    """

    def answer(request: bytes, show: ShowStep) -> bytes:
        name, data = _split_head(request)
        bound_memory(_LEAST_MEMORY, _MEMORY_PER_BYTE, len(data))
        try:
            prepare(data)
            give_up_rights()
            return _with_head(None, read(data, name))
        except ShardyError as error:
            problem = error
        except (MemoryError, RecursionError, OverflowError) as error:
            problem = as_error(error, name)
        diagnostics = [asdict(item) for item in problem.diagnostics]
        return _with_head({"class": type(problem).__name__, "diagnostics": diagnostics}, b"")

    serve(answer)


def give_up_rights() -> None:
    """Let this process write no files, start no processes and open no connections from Python, to its end."""
    # An import would write the bytecode of a module, and whoever asks for the folder of temporary files a file in it.
    sys.dont_write_bytecode = True
    tempfile.gettempdir()

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        if event in _REFUSED or (is_write and arguments[0] != os.devnull):
            raise PermissionError(1, f"the file asks for {event} {shown_arguments(arguments)}")

    sys.addaudithook(refuse)


def shown_arguments(arguments: tuple[Any, ...]) -> str:
    """Return the texts and numbers among the arguments of an event."""
    return " ".join(str(item)[:200] for item in arguments[:2] if isinstance(item, (str, bytes, int)))


def _with_head(head: Any, data: bytes) -> bytes:
    return json.dumps(head).encode() + b"\n" + data


def _split_head(message: bytes) -> tuple[Any, bytes]:
    head, _, data = message.partition(b"\n")
    return json.loads(head), data
