"""Commands in a folder with files that are called after modules of Python and of libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.unit.cli.all_commands import all_commands

MODULE = """\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
HLO = "HloModule m\n\nENTRY e {\n  a = f32[8]{0} parameter(0)\n  ROOT n = f32[8]{0} negate(a)\n}\n"
NAMES = """
abc argparse ast asyncio attr attrs base64 bisect click code collections contextlib copy csv ctypes dataclasses
datetime enum functools gzip hashlib importlib inspect io jax jaxlib joblib json logging math multiprocessing networkx
numbers numpy operator optuna os pathlib pickle platform pluggy queue random re rich select shardy_dialects shardy_py
shutil signal site sitecustomize socket string struct subprocess tempfile threading tokenize types typing usercustomize
uuid warnings weakref xdsl zipfile zlib
"""
TOY = """
import numpy
import shardy_py as sdy
toy = sdy.Dialect("toy")
toy.op("toy.negate", rule="i -> i")
FUNCTIONS = {"toy.negate": numpy.negative}
@sdy.hookimpl
def shardy_register_dialects():
    return [toy]
"""
TOY_PROGRAM = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "toy.negate"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
COMMANDS = {
    "advise": ["advise in.mlir --trials 3"],
    "check": ["check toy.py toy.mlir", "check toy.py toy.mlir --untrusted"],
    "compare": ["compare in.mlir --random 3 --jobs 2", "compare in.mlir --random 1 --jobs 2 --backend dask"],
    "compare-jit": ["compare-jit in.mlir"],
    "compare-reference": ["compare-reference in.mlir"],
    "cost": ["cost in.mlir --machine cpu-8", "cost in.mlir --against-xla"],
    "diff": ["diff in.mlir --schedule flat"],
    "emit": ["emit in.mlir", "emit in.hlo --untrusted"],
    "emit-opt": ["emit-opt kernel.mlir --run"],
    "explain": ["explain in.mlir --value %0"],
    "explore": ["explore in.mlir -o page.html --sweep"],
    "layout": ["layout f32[3,5]"],
    "local": ["local in.mlir", "local in.mlir --run --compare"],
    "machines": ["machines"],
    "mpmd explain": [
        "mpmd explain in.mlir --mesh m0:x=2 --assign main@m0",
        "mpmd explain in.mlir --untrusted --mesh m0:x=2 --assign main@m0",
    ],
    "mpmd plan": ["mpmd plan in.mlir --meshes 1 --machine cpu-8"],
    "mpmd simulate": ["mpmd simulate --json"],
    "plan": ["plan in.mlir --machine cpu-8"],
    "plugins": ["plugins"],
    "propagate": ["propagate in.mlir", "propagate in.mlir --untrusted", "propagate in.hlo --mesh x=2 --untrusted"],
    "rules": ["rules in.mlir"],
    "run": ["run in.mlir --compare"],
    "schedule": ["schedule"],
    "search": ["search in.mlir --budget 3 --jobs 2"],
    "study": ["study study.toml --jobs 2"],
    "shardy-opt": ["in.mlir -sdy-basic-propagate", "in.mlir -sdy-basic-propagate --untrusted"],
}
NEEDED = {"--backend dask": "dask", "plan": "highspy", "search": "optuna", "emit": "xdsl", "--jobs": "joblib"}

STUDY = 'schedules = ["default", "flat"]\n[programs]\nsmall = "in.mlir"\n'
KERNEL = """
func.func @main(%x: tensor<32xf32>, %o: tensor<32xf32>) -> tensor<32xf32> {
  %t = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %e = tensor.extract %x[%t] : tensor<32xf32>
  %r = tensor.insert %e into %o[%t] : tensor<32xf32>
  return %r : tensor<32xf32>
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every file says that it ran."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "in.mlir").write_text(MODULE)
    (folder / "in.hlo").write_text(HLO)
    (folder / "kernel.mlir").write_text(KERNEL)
    (folder / "study.toml").write_text(STUDY)
    (folder / "toy.py").write_text(TOY)
    (folder / "toy.mlir").write_text(TOY_PROGRAM)
    for name in NAMES.split():
        text = f"open({str(folder / 'MARKER')!r}, 'a').write({name!r} + ' ')\nprint('noise')\nraise SystemExit(77)\n"
        (folder / f"{name}.py").write_text(text)
    return folder


def test_every_command_is_tried() -> None:
    """A new command is run in such a folder, too."""
    assert set(COMMANDS) == {*all_commands(), "shardy-opt"}


@pytest.mark.slow
@pytest.mark.parametrize("words", [words for items in COMMANDS.values() for words in items])
def test_nothing_of_the_current_folder_runs(words: str, folder: Path) -> None:
    """Neither the command nor a process that it starts imports a file that lies where the user is."""
    for part, library in NEEDED.items():
        if part in words and find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    is_opt = words in COMMANDS["shardy-opt"]
    # As the scripts of an installed package start: their own folder is on the path, the current one is not.
    code = f"import sys; from shardy_py.cli.{'opt' if is_opt else 'main'} import main; sys.exit(main())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *words.split()],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    marker = folder / "MARKER"
    ran = marker.read_text() if marker.exists() else ""
    marker.unlink(missing_ok=True)
    assert (done.returncode, ran) == (0, ""), done.stderr
    assert "noise" not in done.stdout
