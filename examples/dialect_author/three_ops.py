"""Give three ops rules, check the rules against what the ops compute, and propagate; needs the extra `testing`.

python examples/dialect_author/three_ops.py
"""

import numpy as np

import shardy_py as sdy
from shardy_py.testing import assert_rule_holds

tiny = sdy.Dialect("tiny")
tiny.op("tiny.matmul", rule="i k, k j -> i j", reduction="k", traits=[sdy.Pure])
tiny.op("tiny.cumsum", rule="i j -> i j", need_replication="j", traits=[sdy.Pure])
tiny.op("tiny.gelu", rule="... -> ...", traits=[sdy.Elementwise, sdy.Pure])
registry = sdy.Registry.of([tiny])


def cumsum(x):
    """Each element is the sum of those before it in its row."""
    return np.cumsum(x, axis=1)


assert_rule_holds("tiny.matmul", np.matmul, [(4, 6), (6, 8)], registry=registry)
assert_rule_holds("tiny.cumsum", cumsum, [(4, 6)], registry=registry)
print("rules hold: matmul, cumsum")

# A rule that says too much is found: along j, shards do not see the elements before them.
wrong = sdy.Dialect("tiny")
wrong.op("tiny.cumsum", rule="i j -> i j", traits=[sdy.Pure])
try:
    assert_rule_holds("tiny.cumsum", cumsum, [(4, 6)], registry=sdy.Registry.of([wrong]))
except AssertionError as error:
    print(f"a wrong rule is found: {error}\n")

# No MLIR is needed: a program can be built.
narrow, wide = sdy.tensor(8, 16), sdy.tensor(8, 32)
builder = sdy.Builder()
with builder.function("main", [narrow, sdy.tensor(16, 32), sdy.tensor(32, 16)]) as (x, up, down):
    hidden = builder.op("tiny.gelu", [builder.op("tiny.matmul", [x, up], [wide])], [wide])
    builder.return_(builder.op("tiny.cumsum", [builder.op("tiny.matmul", [hidden, down], [narrow])], [narrow]))
result = sdy.propagate(
    builder.build(),
    {"data": 4, "model": 2},
    in_shardings=[("data", None), (None, "model"), None],
    registry=registry,
)
print(result.text)
