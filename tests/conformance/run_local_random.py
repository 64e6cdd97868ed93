"""Run the local programs of random programs, compare with one device, and print a JSON object a line for each.

Started by test_local_random.py in a process of its own: JAX counts its devices once, and XLA may end the process.
"""

from __future__ import annotations

import json
import random
import re
import sys
from math import prod

from shardy_py.errors import ShardyError
from shardy_py.jax.host import use_devices
from shardy_py.oracle.generate import generate
from tests.conformance.run_local_programs import DEVICES, check

FEATURES = frozenset(
    (
        *("elementwise", "transpose", "reshape", "broadcast", "reverse", "dot", "convolution", "reduce", "window"),
        *("sort", "slice", "concatenate", "pad", "dynamic_slice", "gather", "scatter", "constants", "sdy_constant"),
        *("while", "case", "calls", "optimization_barrier", "replicated", "non_divisible", "device_ids"),
        *("sharding_constraint", "reshard"),
    )
)
"""The features whose programs compute something on numbers that are made up."""
AXES = (2, 3, 4, 6)
"""The sizes of axes, few of which divide the sizes of dimensions."""
LARGEST = 1 << 16
"""Elements of the largest tensor of a program that is run."""
_MESH = re.compile(r"sdy\.mesh @(\w+) = <\[(.*?)\](, device_ids=\[[^\]]*\])?>")
_SIZE = re.compile(r'("\w+")=\d+')
_SCATTER = re.compile(r'"stablehlo\.(?:scatter|select_and_scatter)"[^\n]*\(\{\n(.*?)\n  *\}\)', re.DOTALL)
_SEVERAL = re.compile(r':\d+ = "stablehlo\.scatter"')
_NAME = re.compile(r'"stablehlo\.(\w+)"')
_UNORDERED = frozenset(("add", "multiply", "minimum", "maximum", "and", "or", "return"))
_SHAPE = re.compile(r"tensor<((?:\d+x)+)")


def program(seed: int) -> str:
    """Return the program of a seed; in two of three programs the axes have other sizes, which divide little."""
    features = FEATURES if seed % 3 else FEATURES | {"sub_axes"}
    text = generate(seed, size=8, features=features)
    return text if seed % 3 == 0 else _MESH.sub(lambda match: _other_mesh(match, random.Random(seed)), text)


def _other_mesh(match: re.Match[str], draw: random.Random) -> str:
    names = _SIZE.findall(match[2])
    sizes = [draw.choice(AXES) for _ in names]
    while prod(sizes) > DEVICES:
        sizes[draw.randrange(len(sizes))] = 2 if prod(sizes) > 2 ** len(sizes) else 1
    devices = list(range(prod(sizes)))
    draw.shuffle(devices)
    axes = ", ".join(f"{name}={size}" for name, size in zip(names, sizes, strict=True))
    order = f", device_ids={devices}" if match[3] and devices != sorted(devices) else ""
    return f"sdy.mesh @{match[1]} = <[{axes}]{order}>"


def has_order(text: str) -> bool:
    """Return whether the order of updates of a scatter matters, which is not defined where several meet."""
    bodies = (match[1] for match in _SCATTER.finditer(text))
    return any(
        set(_NAME.findall(body)) - _UNORDERED or "stablehlo" not in body.partition("return")[0] for body in bodies
    )


def shares_buffers(text: str) -> bool:
    """Return whether a scatter has several results: XLA:CPU writes them into one buffer where operands are equal."""
    return _SEVERAL.search(text) is not None


def is_large(text: str) -> bool:
    """Return whether a program has a tensor that takes long."""
    return any(prod(map(int, sizes.rstrip("x").split("x"))) > LARGEST for sizes in _SHAPE.findall(text))


def main() -> None:
    """Check the programs of the seeds on the command line."""
    use_devices(DEVICES)
    for seed in sys.argv[1:]:
        print(json.dumps({"start": seed}), flush=True)
        text = program(int(seed))
        try:
            skipped = "large" if is_large(text) else "order" if has_order(text) or shares_buffers(text) else ""
            answer = {"status": skipped} if skipped else check(text)
        except ShardyError as error:
            answer = {"status": "refused", "reason": error.diagnostics[0].show("error").splitlines()[0]}
        except Exception as error:
            answer = {"status": "broken", "reason": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps({"name": seed, **answer}), flush=True)


if __name__ == "__main__":
    main()
