"""Putting a program together: meshes, functions, ops and results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from shardy_py.errors import Diagnostic, OptionError
from shardy_py.oracle.generate import (
    calls,
    collectives,
    constants,
    contraction,
    control_flow,
    custom_calls,
    elementwise,
    indexing,
    linalg,
    reductions,
    regions,
    sdy_ops,
    shaping,
    unknown,
)
from shardy_py.oracle.generate.choices import Choices
from shardy_py.oracle.generate.program import BlockBuilder, Function, GeneratedValue, Module
from shardy_py.oracle.generate.shardings import MeshText, Style, random_mesh, reversed_devices
from shardy_py.values import frozen

Emitter = Callable[[BlockBuilder], object]

_FAMILIES: dict[str, tuple[tuple[int, Emitter], ...]] = {
    name: emitters
    for module in (
        elementwise,
        shaping,
        contraction,
        reductions,
        indexing,
        linalg,
        constants,
        custom_calls,
        collectives,
        unknown,
        control_flow,
        regions,
        calls,
        sdy_ops,
    )
    for name, emitters in module.EMITTERS.items()
}
_WITH_REGIONS = frozenset({"while", "case", "manual_computation", "named_computation", "unknown_regions"})
_OTHER_FEATURES = (
    *("sdy_constant", "tokens", "data_flow_edges", "func_data_flow_edges", "sub_axes", "priorities", "replicated"),
    *("unreduced", "non_divisible", "several_meshes", "inlined_meshes", "device_ids", "zero_sizes"),
    "unknown_region_arguments",
)

ALL_FEATURES = frozenset({*_FAMILIES, *_OTHER_FEATURES})
"""The name of every switch."""
RARE_FEATURES = frozenset(
    {
        *("named_computation", "data_flow_edges", "func_data_flow_edges", "inlined_meshes", "maximal", "zero_sizes"),
        *("unknown_regions", "unknown_region_arguments"),
    }
)
"""Switches for what full pipelines reject, or the reference crashes on."""
DEFAULT_FEATURES = ALL_FEATURES - RARE_FEATURES
"""Features that every pipeline accepts."""

_WEIGHTS = {
    **{"elementwise": 14, "dot": 8, "reshape": 6, "transpose": 5, "broadcast": 4, "reduce": 4},
    **dict.fromkeys(("unknown_ops", "ruleless_ops", "constants", "rng", "sdy_collectives", "convolution"), 1),
}
_VOCABULARIES = (
    (4, 8, 16),
    (2, 4, 8),
    (8, 16, 32),
    (16, 24, 48),
    (1, 8, 16),
    (6, 12, 24),
    (4, 12, 5, 64),
    (3, 7, 8, 1),
)


@frozen
class Generated:
    """A generated program.

    Args:
        text: The module.
        used: How often each op was generated.
    """

    text: str
    used: Counter[str]


def parse_features(text: str) -> frozenset[str]:
    """Return a set of features from text: names, ``all``, ``default``; ``-name`` takes one away.

    >>> sorted(parse_features("dot,elementwise"))
    ['dot', 'elementwise']

    Raises:
        OptionError: a name is unknown.
    """
    chosen: set[str] = set()
    for index, item in enumerate(filter(None, (part.strip() for part in text.split(",")))):
        name = item.lstrip("-+")
        named = {"all": ALL_FEATURES, "default": DEFAULT_FEATURES}.get(name, frozenset({name}))
        if not named <= ALL_FEATURES:
            hint = f"the features are {', '.join(sorted(ALL_FEATURES))}"
            raise OptionError(Diagnostic("unknown-feature", f"unknown feature '{name}'", hint=hint))
        if index == 0 and item[0] in "-+":
            chosen |= DEFAULT_FEATURES
        chosen = chosen - named if item.startswith("-") else chosen | named
    return frozenset(chosen)


def generate(seed: int, *, size: int = 25, features: Iterable[str] = DEFAULT_FEATURES) -> str:
    """Return the text of the program that belongs to a seed.

    Args:
        seed: Any integer; the same one gives the same program.
        size: About how many ops the main function has.
        features: The switches that are on.
    """
    return generate_program(seed, size=size, features=features).text


def generate_program(seed: int, *, size: int = 25, features: Iterable[str] = DEFAULT_FEATURES) -> Generated:
    """Return the program that belongs to a seed, and what is in it."""
    return generate_from(Choices.from_seed(seed), size=size, features=features)


def generate_from(choices: Choices, *, size: int = 25, features: Iterable[str] = DEFAULT_FEATURES) -> Generated:
    """Return a program made from a source of choices."""
    module = _new_module(choices, frozenset(features))
    if module.has("calls") and choices.chance(30):
        calls.add_functions(module, size)
    main = Function(module, "main")
    for _ in range(choices.integer(1, 4)):
        main.argument(module.shape(low=1), "f32")
    emit(main.body, size)
    if module.functions and choices.chance(60):
        for _ in range(choices.integer(1, 2)):
            calls.calls_inside_and_outside(main.body)
    finish(main)
    functions = [main, *module.functions] if choices.chance(60) else [*module.functions, main]
    if module.has("calls") and choices.chance(20):
        functions = choices.shuffled(functions)
    meshes = [f"sdy.mesh {mesh.reference} = {mesh.body}" for mesh in module.meshes if mesh.reference.startswith("@")]
    return Generated("\n".join([*meshes, *(item.text() for item in functions), ""]), module.used)


def _new_module(choices: Choices, features: frozenset[str]) -> Module:
    def sometimes(feature: str, percent: int, amount: int) -> int:
        return amount if feature in features and choices.chance(percent) else 0

    mesh = random_mesh(choices, "mesh", device_ids="device_ids" in features and choices.chance(8))
    style = Style(
        open_dims=choices.pick((85, 50, 95, 70)),
        sub_axes=sometimes("sub_axes", 40, 40),
        priorities=sometimes("priorities", 30, 35),
        replicated=sometimes("replicated", 35, 20),
        unreduced=sometimes("unreduced", 20, 15),
        non_divisible=sometimes("non_divisible", 35, 25),
    )
    sizes = choices.pick(_VOCABULARIES)
    if "zero_sizes" in features and choices.chance(10):
        sizes = (*sizes, 0)
    return Module(
        choices,
        features,
        mesh,
        _meshes(choices, features, mesh),
        style,
        sizes,
        emit,
        finish,
        argument_percent=choices.pick((80, 50, 95)),
        result_percent=choices.pick((8, 0, 15, 30)),
    )


def _meshes(choices: Choices, features: frozenset[str], mesh: MeshText) -> list[MeshText]:
    """Return all meshes, the usual one first: another order of devices, an inlined one, a maximal or empty one."""
    meshes = [mesh]
    if "several_meshes" in features and choices.chance(25):
        axes = ", ".join(f'"{axis.name}"={axis.size}' for axis in mesh.axes)
        other = f"<[{axes}]>" if "device_ids" in mesh.body else f"<[{axes}]{reversed_devices(mesh.axes)}>"
        meshes.append(MeshText("@other", mesh.axes, other))
    if "inlined_meshes" in features and choices.chance(10):
        meshes.append(MeshText(f"mesh{mesh.body}", mesh.axes, mesh.body))
    if "maximal" in features and choices.chance(25):
        body = choices.pick(("<[], device_ids=[0]>", "<[], device_ids=[1]>", "<[]>"))
        meshes.append(MeshText("@one", (), body))
    return meshes


def emit(block: BlockBuilder, count: int) -> None:
    """Add about that many random ops to a block."""
    module = block.module
    families = [
        (_WEIGHTS.get(name, 2), name)
        for name in _FAMILIES
        if module.has(name) and not (name in _WITH_REGIONS and block.depth >= module.depth_limit)
    ]
    for _ in range(count if families else 0):
        name = module.choices.weighted(families)
        module.choices.weighted(_FAMILIES[name])(block)


def finish(function: Function) -> None:
    """Choose the results of a function; ops with priorities must not be dead, so some of them are results."""
    module, block = function.module, function.body
    candidates = [value for value in block.values if value.shape is not None]
    unused = [value for value in candidates if value.name not in function.consumed]
    chosen = module.choices.some(unused[-8:] or candidates[-4:], low=1)
    if module.choices.chance(10) and function.arguments and function.arguments[0][0] in block.values:
        chosen.append(function.arguments[0][0])
    chosen += [value for value in block.pinned if value not in chosen and value.name not in _live(block, chosen)]
    for value in chosen:
        sharding = module.sharding(value.shape) if module.choices.chance(module.argument_percent // 2) else ""
        function.results.append((value, sharding))


def _live(block: BlockBuilder, results: Iterable[GeneratedValue]) -> set[str]:
    """Return the names of all values that the results depend on."""
    live: set[str] = set()
    waiting = [value.name for value in results]
    while waiting:
        name = waiting.pop()
        if name not in live:
            live.add(name)
            waiting += block.live.get(name, ())
    return live
