"""Names of a program as it was given."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="the modules are MLIR text")

from shardy_py.cost.session import Session
from tests.unit.explain.explained import MESH, sharded


def test_names_stay_while_passes_move_values() -> None:
    """A call becomes a computation, its callee goes; the labels have the names that were there before."""
    session = Session.open(
        f"""{MESH}func.func @main(%arg0: tensor<8xf32> {sharded('[{"a"}]')}) -> tensor<8xf32> {{
          %0 = func.call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }}
        func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = stablehlo.negate %arg0 : tensor<8xf32>
          return %0 : tensor<8xf32>
        }}""",
        keep_names=True,
    )
    assert session.names is not None
    labels = session.names.labels(session.program, session.problem, session.copies)
    assert {"%arg0", "%0", "result0", "@f:%arg0", "@f:%0"} <= set(labels.slots)
