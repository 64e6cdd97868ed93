"""Modules are found by the names that they had before."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from shardy_py.moved_modules import MOVED, present_name

LIBRARIES = {
    "click",
    "flatbuffers",
    "jax",
    "jaxlib",
    "joblib",
    "llvmlite",
    "matplotlib",
    "optuna",
    "rich",
    "torch",
    "xdsl",
}


@pytest.mark.parametrize("former", sorted(name for name, present in MOVED.items() if present))
def test_a_former_name_is_the_present_module(former: str) -> None:
    """The module, or what a package has, is the same object, and a warning says what it is called."""
    try:
        present = importlib.import_module(f"shardy_py.{MOVED[former]}")
    except ModuleNotFoundError as error:
        pytest.skip(f"needs {error.name}") if error.name in LIBRARIES else pytest.fail(str(error))
    sys.modules.pop(f"shardy_py.{former}", None)
    with pytest.warns(DeprecationWarning, match=f"shardy_py.{former} is shardy_py.{MOVED[former]} now"):
        module = importlib.import_module(f"shardy_py.{former}")
    if hasattr(present, "__path__"):
        assert [
            name for name in getattr(present, "__all__", ()) if getattr(module, name) is not getattr(present, name)
        ] == []
        assert list(module.__path__) == []
    else:
        assert module is present
        assert module.__spec__ is not None
        assert module.__name__ == module.__spec__.name == f"shardy_py.{MOVED[former]}"


def test_other_names_stay_unknown() -> None:
    """What never was there is an error, and nothing is imported for it twice."""
    assert present_name("shardy_py.nothing") is present_name("other.emitters") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("shardy_py.nothing")


def test_statements_of_before_work_in_a_new_process() -> None:
    """Names are imported from packages of before, and from those that hold several modules now."""
    code = (
        "from shardy_py.emitters import emit; from shardy_py.targets.sort_dimensions import count_from_the_front;"
        "from shardy_py.analysis.cost import estimate; from shardy_py.ir.interfaces import ConstantLike;"
        "from shardy_py.ir.graph import Op; import shardy_py; assert shardy_py.ConstantLike is ConstantLike;"
        "from shardy_py.emitters.kernel import Kernel as former; from shardy_py.kernels.kernel import Kernel;"
        "assert former is Kernel"
    )
    pytest.importorskip("xdsl")
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
