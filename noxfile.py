"""One session per check of a change: ``nox`` runs all of them, ``nox -s lint types`` runs two.

The commands of the checks are here and nowhere else. The sessions use the environment that nox runs in, made by
``pip install -e '.[dev]'``; ``.ci/run`` makes such an environment and runs ``nox`` in it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.3.2"
nox.options.default_venv_backend = "none"
CHECKS = (
    "lint",
    "format",
    "types",
    "imports",
    "tests",
    "docs",
    "wheel",
    "slow",
    "browser",
    "conformance",
    "fuzz",
    "lowest",
    "newest",
    "torch",
)
nox.options.sessions = CHECKS

NO_TEST_SELECTED = 5
SEED = "--hypothesis-seed=0"
"""One commit gives one answer; pytest by itself draws other examples each time."""
TWO_PROCESSES = ("-n", "2", "--dist", "worksteal")
"""Each process begins with one half of the tests, so that those of a file share what they prepare."""


@nox.session
def lint(session: nox.Session) -> None:
    """Lint the code."""
    session.run("ruff", "check", ".")


@nox.session
def format(session: nox.Session) -> None:
    """Check the format of the code."""
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types."""
    session.run("mypy")


@nox.session
def imports(session: nox.Session) -> None:
    """Check that imports point down."""
    session.run("lint-imports", "--no-cache")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests that take a few minutes in all."""
    session.run("python", "-m", "pytest", SEED, *TWO_PROCESSES, *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation as a site in ``build/site``; a warning is an error."""
    session.run("mkdocs", "build", "--quiet", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the wheel and the sdist, and use the wheel in an empty environment."""
    _run_marked(session, "slow", "tests/packaging")


@nox.session
def slow(session: nox.Session) -> None:
    """Run the longer tests."""
    _run_marked(session, "slow", *TWO_PROCESSES, *_files_with("slow", without="packaging"))


@nox.session
def browser(session: nox.Session) -> None:
    """Open pages in Chromium; where there is none, its tests are skipped and say so."""
    _run_marked(session, "browser", *_files_with("browser"))


@nox.session
def conformance(session: nox.Session) -> None:
    """Compare with the reference."""
    _run_marked(session, "conformance", *TWO_PROCESSES, *_files_with("conformance"))


@nox.session
def fuzz(session: nox.Session) -> None:
    """Compare random programs with the reference; SHARDY_FUZZ_PROGRAMS says how many. Try laws on many examples."""
    _run_marked(session, "fuzz", *TWO_PROCESSES, *_files_with("fuzz"))
    if not session.posargs:
        command = ("python", "-m", "pytest", SEED, "--hypothesis-profile=thorough", *TWO_PROCESSES, "tests/properties")
        session.run(*command)


ROOMS = ("api", "frontends", "indexing", "ir", "plugins", "propagation", "report", "schedule", "sharding")
"""The folders of tests that need neither the newest ops nor the reference of jaxlib 0.10.2."""


_EXTRAS = ".[cli,stablehlo,jax,xdsl,codegen,parallel,plot,search,testing]"
_TOOLS = ("filecheck>=1.0", "import-linter>=2.0", "pytest-xdist>=3.5")


@nox.session(venv_backend="venv")
def lowest(session: nox.Session) -> None:
    """Run tests with the lowest version of every dependency."""
    session.install("--no-compile", "-c", ".ci/lowest.txt", "-e", _EXTRAS, *_TOOLS)
    session.run(*_tests_of_versions(), *session.posargs)


@nox.session(venv_backend="venv")
def newest(session: nox.Session) -> None:
    """Run tests with the newest version of every dependency; a failure is shown, and is not that of the change."""
    session.install("--no-compile", "--upgrade", "-e", _EXTRAS, *_TOOLS)
    session.run(*_tests_of_versions(), *session.posargs, success_codes=range(6))


def _tests_of_versions() -> tuple[str, ...]:
    # What users of JAX call first stands beside the core.
    folders = [*(f"tests/unit/{room}" for room in ROOMS), "tests/unit/jax/test_jit.py"]
    # A fault that only a newer jaxlib can spell.
    newer = "--deselect=tests/unit/api/test_bad_input.py::test_refused[edge on an imported call]"
    return ("python", "-m", "pytest", SEED, *TWO_PROCESSES, *folders, newer)


@nox.session(venv_backend="venv")
def torch(session: nox.Session) -> None:
    """Run the tests that need PyTorch, in an environment of their own."""
    constraints = ".ci/constraints-torch.txt"
    session.install("--no-compile", "-c", constraints, "torch==2.13.0")
    extras = ".[cli,jax,onnx,parallel,plot,search,testing]"
    models = ("onnxscript==0.7.2", "transformers==5.23.0")
    session.install("--no-compile", "-c", constraints, "-e", extras, "pytest-xdist>=3.5", *models)
    _run_marked(session, "torch", *TWO_PROCESSES, "tests/torch", "tests/docs")


def _files_with(marker: str, *, without: str = "") -> list[str]:
    """Return the files of tests that name a marker, but those of PyTorch, which have a session of their own.

    To collect the others as well takes each process half a minute.
    """
    left_out = {"torch", without}
    files = [path for path in sorted(Path("tests").rglob("test_*.py")) if left_out.isdisjoint(path.parts)]
    return [str(path) for path in files if f"pytest.mark.{marker}" in path.read_text(encoding="utf-8")]


def _run_marked(session: nox.Session, marker: str, *arguments: str) -> None:
    """Run the tests with a marker, 40 minutes at most; what is asked for behind ``--`` takes the place of the files."""
    arguments = tuple(word for word in arguments if not (session.posargs and word.endswith(".py")))
    limit = ["timeout", "2400"] if shutil.which("timeout") else []
    session.run(
        *limit,
        *("python", "-m", "pytest", "-m", marker, SEED, *arguments, *session.posargs),
        env={"SHARDY_FUZZ_PROGRAMS": os.environ.get("SHARDY_FUZZ_PROGRAMS", "15")},
        success_codes=[0, NO_TEST_SELECTED],
    )
