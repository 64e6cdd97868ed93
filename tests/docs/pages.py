"""Finds the fenced blocks of the documentation and runs them, page by page, in a directory of their own."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

from attrs import frozen

from tests.xla_flags import QUICK_JAX

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
COPIED = (
    *("shardy_py", "dialects", "tests", "docs", "examples", "changes", ".ci"),
    *("pyproject.toml", "noxfile.py", "README.md", "CONTRIBUTING.md"),
)
IN_A_COPY = ROOT / "docs" / "contributing"
"""Pages that change the project itself: their blocks run in a copy of the checkout."""
RUN = ("python", "console", "mlir", "diff")
SHOWN = ("text", "toml")
_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@frozen
class Block:
    """One fenced block.

    ``python`` runs, in one namespace per page; with prompts, its output is compared. ``console`` runs each ``$``
    line in a shell and compares what follows, ``...`` standing for anything. ``file=NAME`` writes the block to a file
    instead; of a ``diff`` it is the file that changes. ``exit=N`` is the exit code a console block expects. A block
    with ``needs=LIBRARY`` runs where that library is installed; the session ``torch`` has PyTorch.
    """

    page: Path
    line: int
    language: str
    options: dict[str, str]
    body: str

    @property
    def place(self) -> str:
        """Where the block starts."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def find_blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    blocks = []
    for match in _FENCE.finditer(text):
        language, *options = match["info"].split() or [""]
        pairs = dict(option.partition("=")[::2] for option in options)
        blocks.append(Block(page, text.count("\n", 0, match.start()) + 1, language, pairs, match["body"]))
    return blocks


def run_page(page: Path, directory: Path) -> int:
    """Run the blocks of a page in order and return how many there were.

    Raises:
        AssertionError: a block fails or prints something else than the page says.
    """
    is_copy = IN_A_COPY in page.parents
    if is_copy:
        copy_checkout(directory)
    else:
        (directory / "examples").symlink_to(ROOT / "examples")
    # A finder for "." keeps looking where the page before this one ran.
    sys.path_importer_cache.pop(".", None)
    namespace: dict[str, object] = {"__name__": "page"}
    blocks = find_blocks(page)
    for block in blocks:
        if "needs" in block.options and importlib.util.find_spec(block.options["needs"]) is None:
            continue
        if block.language == "diff":
            apply_diff(block, directory / block.options["file"])
        elif "file" in block.options:
            path = directory / block.options["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.body, encoding="utf-8")
        elif block.language == "python":
            run_python(block, namespace)
        elif block.language == "console":
            run_console(block, directory, is_copy=is_copy)
    return len(blocks)


def listed_files(page: Path) -> dict[str, str]:
    """Return what a page says of each file that its change touches, from the table at its beginning."""
    table = page.read_text(encoding="utf-8").partition("| file | change |\n")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `(.+?)` \| (.+) \|$", table, re.MULTILINE))


def changed_files(directory: Path) -> set[str]:
    """Return the files of a copy of the checkout that are new or have another content."""
    folders = [directory / name for name in COPIED]
    files = [path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*"))]
    collected = set()
    for path in files:
        name = path.relative_to(directory)
        if path.is_file() and "__pycache__" not in name.parts and ".pytest_cache" not in name.parts:
            before = ROOT / name
            if not before.is_file() or before.read_bytes() != path.read_bytes():
                collected.add(name.as_posix())
    return collected


def copy_checkout(directory: Path) -> None:
    """Copy the packages and their tests, with their bytecode but what another process is about to write."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("*.pyc.*"))
        else:
            shutil.copy(ROOT / name, directory)


def apply_diff(block: Block, path: Path) -> None:
    """Apply a diff without numbers of lines: what each hunk shows of the file before is there once.

    Raises:
        AssertionError: the file has no such lines, or has them more than once.
    """
    text = path.read_text(encoding="utf-8")
    for hunk in re.split(r"^@@.*\n", block.body, flags=re.MULTILINE):
        before, after = ("".join(f"{line[1:]}\n" for line in hunk.splitlines() if line[:1] != sign) for sign in "+-")
        assert text.count(before) == 1, f"{block.place}: not once in {block.options['file']}:\n{before}"
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")


def run_python(block: Block, namespace: dict[str, object]) -> None:
    """Run a Python block; one with prompts as a doctest."""
    # The empty lines make line numbers in tracebacks those of the page.
    padded = "\n" * block.line + block.body
    if not block.body.lstrip().startswith(">>>"):
        exec(compile(padded, block.place, "exec"), namespace)  # the documentation is ours
        return
    test = doctest.DocTestParser().get_doctest(block.body, namespace, block.place, str(block.page), block.line)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=_FLAGS)
    runner.run(test, out=report.append, clear_globs=False)
    namespace.update(test.globs)
    assert not report, "".join(report)


def run_console(block: Block, directory: Path, *, is_copy: bool) -> None:
    """Run the commands of a console block, but those that install something or run these very tests."""
    paths = {"PYTHONPATH": f"{directory}{os.pathsep}{directory / 'dialects'}"} if is_copy else {}
    for line, expected in commands(block.body):
        command = line
        if line.startswith("pip "):
            install, _, command = line.partition(" && ")
            check_install(install)
        if not command or (command.startswith("python -m pytest") and not is_copy):
            continue
        status = int(block.options.get("exit", 0))
        done, unseen = _run_command(command, directory, paths)
        same = not expected or doctest.OutputChecker().check_output(expected, done.stdout, _FLAGS)
        if same and done.returncode != status and "torch.distributed.run" in command:
            # Seen once in hundreds of runs: all processes printed what they should, and one died at its end.
            warnings.warn(f"{block.place}: ended with {done.returncode}, is run again\n{unseen}", stacklevel=1)
            done, unseen = _run_command(command, directory, paths)
            same = not expected or doctest.OutputChecker().check_output(expected, done.stdout, _FLAGS)
        assert done.returncode == status, f"{block.place}: {command}\n{done.stdout}\n{unseen}"
        assert same, f"{block.place}: {command}\nexpected:\n{expected}\ngot:\n{done.stdout}\n{unseen}"


def _run_command(command: str, directory: Path, paths: dict[str, str]) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run a command of a page; return it with what it wrote to stderr where the page leaves that out."""
    errors = directory / "errors.txt"
    errors.write_text("", encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", command.replace("2>/dev/null", f"2>>'{errors}'")],
        cwd=directory,
        env={
            **os.environ,
            **QUICK_JAX,
            **paths,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "100",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return done, errors.read_text(encoding="utf-8")


def check_install(command: str) -> None:
    """Check that the extras an installation names exist."""
    import tomllib

    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extras in re.findall(r"\[([\w,]+)\]", command):
        assert set(extras.split(",")) <= set(known), f"{command}: the extras are {', '.join(known)}"


def commands(body: str) -> list[tuple[str, str]]:
    """Return each command with the output that follows it."""
    collected: list[tuple[str, list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            collected.append((line[2:], []))
        elif collected and collected[-1][0].endswith("\\"):
            collected[-1] = (f"{collected[-1][0][:-1]}{line.strip()}", [])
        elif collected:
            collected[-1][1].append(line)
    return [(command, "".join(f"{line}\n" for line in output)) for command, output in collected]
