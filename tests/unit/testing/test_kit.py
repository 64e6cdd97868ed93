"""The kit as a whole: what importing it brings along, and its strategies."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shardy_py import testing
from shardy_py.sharding.verify import verify_tensor_sharding
from shardy_py.sharding.verify_rule import verify_op_sharding_rule
from shardy_py.testing import strategies

FEW = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def run(code):
    """Run Python in a new interpreter and return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_kit_imports_no_library():
    """Neither numpy nor Hypothesis nor pytest come before they are needed."""
    heavy = "{'numpy', 'hypothesis', 'pytest', 'jaxlib', 'xdsl', 'networkx'}"
    code = f"import sys; from shardy_py.testing import assert_rule, make_op; print(sorted(set(sys.modules) & {heavy}))"
    assert run(code) == "[]"


@pytest.mark.parametrize(
    ("name", "library"), [("strategies", "hypothesis"), ("check_rule_numerically", "numpy"), ("Local", "numpy")]
)
def test_a_missing_library_has_a_hint(name, library):
    """Without what the extra brings, the error says which extra that is."""
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        f"from shardy_py import testing\n"
        f"try:\n    testing.{name}\nexcept ModuleNotFoundError as error:\n    print(error, error.name)"
    )
    assert run(code) == f"shardy_py.testing.{name} needs {library}: pip install 'shardy_py[testing]' {library}"


def test_every_name_is_there():
    """What is exported exists, and nothing else is found."""
    assert all(hasattr(testing, name) for name in testing.__all__)
    assert dir(testing) == sorted(testing.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        testing.nothing  # noqa: B018


@FEW
@given(strategies.rules_with_shapes())
def test_drawn_rules_fit_their_shapes(drawn):
    """A rule is valid for the shapes it is drawn with."""
    assert verify_op_sharding_rule(*drawn) == []


@FEW
@given(st.data(), strategies.meshes(), strategies.op_sharding_rules(max_factors=4))
def test_drawn_shardings_fit_their_rule(data, mesh, rule):
    """Each tensor of a rule has a valid sharding of its rank, or none."""
    shardings = data.draw(strategies.rule_shardings(rule, mesh))
    assert len(shardings) == len(rule.mappings)
    for sharding, mapping in zip(shardings, rule.mappings, strict=True):
        if sharding is not None:
            assert verify_tensor_sharding(sharding, mesh, (96,) * len(mapping)) == []
