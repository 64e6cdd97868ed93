"""The module being generated: functions, blocks, values and the text they become."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from attrs import Factory, evolve, field

from shardy_py.ir.graph.op_names import CONSTANT
from shardy_py.oracle.generate.choices import Choices
from shardy_py.oracle.generate.shardings import MeshText, Style, random_sharding
from shardy_py.values import define, frozen

_MAX_ARGUMENTS = 16
FLOATS = frozenset({"f32", "bf16", "f16", "f64"})
INTEGERS = frozenset({"i32", "i64", "ui32", "ui64", "i8"})
TOKEN = "!stablehlo.token"


@frozen
class GeneratedValue:
    """An SSA value: its name, and its shape and element type; a shape of None is for other types."""

    name: str
    shape: tuple[int, ...] | None
    dtype: str

    @property
    def type(self) -> str:
        """The type as text."""
        return type_text(self.shape, self.dtype)

    @property
    def dims(self) -> tuple[int, ...]:
        """The shape; () where there is none."""
        return self.shape or ()

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)


def type_text(shape: tuple[int, ...] | None, dtype: str) -> str:
    """Return a type as text."""
    return dtype if shape is None else f"tensor<{''.join(f'{size}x' for size in shape)}{dtype}>"


def array(items: Iterable[int]) -> str:
    """Return a dense array attribute of integers."""
    values = ", ".join(map(str, items))
    return f"array<i64: {values}>" if values else "array<i64>"


ResultType = tuple[tuple[int, ...] | None, str]


@define
class Module:
    """A module under construction, and what holds for the whole of it.

    Args:
        choices: Where every decision comes from.
        features: The names of the features that may be used.
        mesh: The mesh nearly all shardings use.
        meshes: All meshes.
        style: How shardings look.
        sizes: The few dimension sizes of this program.
        emit: Adds random ops to a block.
        finish: Chooses the results of a function.
        argument_percent: How often an argument has a sharding.
        result_percent: How often an op has one.
        used: How often each op or construct was generated.
    """

    choices: Choices
    features: frozenset[str]
    mesh: MeshText
    meshes: list[MeshText]
    style: Style
    sizes: tuple[int, ...]
    emit: Callable[[BlockBuilder, int], None]
    finish: Callable[[Function], None]
    argument_percent: int = 50
    result_percent: int = 5
    used: Counter[str] = Factory(Counter)
    groups: dict[int, tuple[int, ...]] = Factory(dict)
    grouped: set[str] = Factory(set)
    functions: list[Function] = Factory(list)
    depth_limit: int = 2

    def has(self, feature: str) -> bool:
        """True if a feature is on."""
        return feature in self.features

    def sharding(
        self, shape: tuple[int, ...] | None, *, without: frozenset[str] = frozenset(), style: Style | None = None
    ) -> str:
        """Return a random sharding for a value."""
        mesh = self.mesh if without or not self.choices.chance(6) else self.choices.pick(self.meshes)
        style = style or self.style
        if shape is None:
            return f"<{mesh.reference}, []>"
        return random_sharding(self.choices, mesh, shape, style, without=without)

    def shape(self, *, low: int = 0, high: int = 4) -> tuple[int, ...]:
        """Return a random shape of the usual sizes."""
        rank = min(max(self.choices.weighted(((8, 2), (6, 3), (3, 1), (2, 4), (1, 0))), low), high)
        return tuple(self.choices.pick(self.sizes) for _ in range(rank))


@define
class Function:
    """A function under construction."""

    module: Module
    name: str
    private: bool = False
    arguments: list[tuple[GeneratedValue, str]] = Factory(list)
    results: list[tuple[GeneratedValue, str]] = Factory(list)
    names: int = 0
    consumed: set[str] = Factory(set)
    body: BlockBuilder = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.body = BlockBuilder(self, None)

    def fresh(self) -> str:
        """Return an unused name."""
        self.names += 1
        return f"%v{self.names}"

    def argument(self, shape: tuple[int, ...] | None, dtype: str) -> GeneratedValue:
        """Add an argument, often with a sharding."""
        module = self.module
        value = GeneratedValue(f"%arg{len(self.arguments)}", shape, dtype)
        sharding = module.sharding(shape) if module.choices.chance(module.argument_percent) else ""
        self.arguments.append((value, sharding))
        self.body.values.insert(0, value)
        return value

    def text(self) -> str:
        """Return the function as text."""
        inputs = ", ".join(f"{value.name}: {value.type}{_braced(sharding)}" for value, sharding in self.arguments)
        outputs = ", ".join(f"{value.type}{_braced(sharding)}" for value, sharding in self.results)
        names = ", ".join(value.name for value, _ in self.results)
        types = ", ".join(value.type for value, _ in self.results)
        last = f"  return {names} : {types}" if self.results else "  return"
        head = f"func.func {'private' if self.private else 'public'} @{self.name}({inputs}) -> ({outputs}) {{"
        return "\n".join([head, *indented(self.body.lines), last, "}"])


def _braced(sharding: str) -> str:
    return f" {{sdy.sharding = #sdy.sharding{sharding}}}" if sharding else ""


def indented(lines: Iterable[str]) -> list[str]:
    """Return lines moved two columns to the right."""
    return [f"  {line}" for line in lines]


@define
class BlockBuilder:
    """A block under construction: its lines, and the values that ops in it may use.

    Args:
        function: The function it is in.
        parent: The block around it, or None for the body of a function.
        isolated: Whether the values of the blocks around it are out of reach.
        without: Names of the axes that shardings in it must not use (manual ones).
        opaque: Whether it is inside an op of an unknown dialect, through which no symbol is seen.
    """

    function: Function
    parent: BlockBuilder | None
    isolated: bool = False
    without: frozenset[str] = frozenset()
    opaque: bool = False
    lines: list[str] = Factory(list)
    values: list[GeneratedValue] = Factory(list)
    live: dict[str, set[str]] = Factory(dict)
    pinned: list[GeneratedValue] = Factory(list)
    captured: set[str] = Factory(set)

    @property
    def module(self) -> Module:
        """The module it is in."""
        return self.function.module

    @property
    def choices(self) -> Choices:
        """Source of all decisions."""
        return self.function.module.choices

    @property
    def depth(self) -> int:
        """Number of enclosing regions inside the function."""
        return 0 if self.parent is None else self.parent.depth + 1

    def visible(self) -> list[GeneratedValue]:
        """Return every value that may be used here, oldest first."""
        if self.parent is None or self.isolated:
            return self.values
        return [*self.parent.visible(), *self.values]

    def child(
        self, arguments: Iterable[ResultType] = (), *, isolated: bool = False
    ) -> tuple[BlockBuilder, list[GeneratedValue]]:
        """Return a block inside this one, and its arguments."""
        block = BlockBuilder(self.function, self, isolated, self.without, self.opaque)
        values = [GeneratedValue(self.function.fresh(), *item) for item in arguments]
        block.values += values
        return block, values

    def find(self, predicate: Callable[[GeneratedValue], bool]) -> GeneratedValue | None:
        """Return one visible tensor for which ``predicate`` holds, mostly a young one, or None."""
        candidates = [value for value in self.visible() if value.shape is not None and predicate(value)]
        if not candidates:
            return None
        if self.choices.chance(40):
            candidates = [value for value in candidates if value.name not in self.function.consumed] or candidates
        recent = candidates[-4:] if self.choices.chance(40) else candidates
        return self.choices.pick(recent[::-1])

    def tensor(self, shape: tuple[int, ...], dtype: str = "f32") -> GeneratedValue:
        """Return a value of that type, new if there is none or by chance."""
        value = self.find(lambda item: item.shape == shape and item.dtype == dtype)
        if value is not None and not self.choices.chance(4):
            return value
        return self.fresh_tensor(shape, dtype)

    def fresh_tensor(self, shape: tuple[int, ...], dtype: str = "f32") -> GeneratedValue:
        """Return a new value of that type: an argument of the function, or the result of an op without operands."""
        reachable = not self.isolated and (self.parent is None or not self._is_inside_isolated())
        if reachable and len(self.function.arguments) < _MAX_ARGUMENTS and self.choices.chance(80):
            return self.function.argument(shape, dtype)
        return self.filler(shape, dtype)

    def _is_inside_isolated(self) -> bool:
        block: BlockBuilder | None = self
        while block is not None:
            if block.isolated:
                return True
            block = block.parent
        return False

    def filler(self, shape: tuple[int, ...], dtype: str) -> GeneratedValue:
        """Return a constant of that type."""
        name = CONSTANT if self.module.has("sdy_constant") and self.choices.chance(30) else "stablehlo.constant"
        value = self.choices.integer(0, 3)
        if dtype == "i1":
            text = "true" if value else "false"
        elif dtype.startswith("complex"):
            text = f"({value}.0, 0.0)"
        else:
            text = f"{value}.0" if dtype in FLOATS else str(value)
        number = f"dense<{text}> : {type_text(shape, dtype)}"
        return self.op(name, [], [(shape, dtype)], {"value": number})[0]

    def value(
        self,
        predicate: Callable[[GeneratedValue], bool] = lambda value: True,
        *,
        low: int = 0,
        high: int = 6,
        dtype: str = "f32",
    ) -> GeneratedValue:
        """Return a visible tensor of a rank in the given range, a new one where there is none."""
        tensor = self.find(lambda item: low <= item.rank <= high and predicate(item))
        return tensor if tensor is not None else self.fresh_tensor(self.module.shape(low=low, high=min(high, 4)), dtype)

    def floats(self, *, low: int = 0, high: int = 6) -> GeneratedValue:
        """Return a tensor of floats."""
        return self.value(lambda item: item.dtype in FLOATS, low=low, high=high)

    def op(
        self,
        name: str,
        operands: Sequence[GeneratedValue],
        results: Sequence[ResultType],
        attributes: dict[str, str] | None = None,
        *,
        regions: Sequence[str] = (),
        sharded: bool = True,
        keep: bool = True,
    ) -> list[GeneratedValue]:
        """Add an op in generic form and return its results.

        Args:
            name: The full name of the op.
            operands: What it uses.
            results: The types of its results.
            attributes: Name and text of each attribute.
            regions: The text of each region, without the braces.
            sharded: Whether it may get a sharding.
            keep: Whether later ops may use its results.
        """
        values = self.result_values(results)
        entries = dict(attributes or {})
        if sharded and results and self.choices.chance(self.module.result_percent):
            entries["sdy.sharding"] = self.per_value(values)
        inner = ", ".join(f"{key} = {text}" for key, text in entries.items())
        body = f" ({', '.join(f'{{{chr(10)}{region}{chr(10)}}}' for region in regions)})" if regions else ""
        self.line(
            f'{left(values)}"{name}"({", ".join(value.name for value in operands)}){body}'
            f"{f' {{{inner}}}' if inner else ''} : ({', '.join(value.type for value in operands)}) -> "
            f"({', '.join(value.type for value in values)})"
        )
        self.note(name, operands, values, pinned="p" in _priorities(entries.get("sdy.sharding", "")))
        if keep:
            self.values += values
        return values

    def raw(
        self,
        name: str,
        operands: Sequence[GeneratedValue],
        results: Sequence[ResultType],
        text: str,
        *,
        pinned: bool = False,
    ) -> list[GeneratedValue]:
        """Add an op in its own syntax; ``text`` is what stands right of the equals sign."""
        values = self.result_values(results)
        self.line(f"{left(values)}{text}")
        self.note(name, operands, values, pinned=pinned)
        self.values += values
        return values

    def per_value(self, values: Sequence[GeneratedValue], style: Style | None = None) -> str:
        """Return shardings for all results; several results have no unreduced axes."""
        style = style or self.module.style
        if len(values) > 1:
            style = evolve(style, unreduced=0)
        if self.parent is not None:
            style = evolve(style, priorities=0)
        parts = [self.module.sharding(value.shape, without=self.without, style=style) for value in values]
        return f"#sdy.sharding_per_value<[{', '.join(parts)}]>"

    def sharding(self, shape: tuple[int, ...] | None, style: Style | None = None) -> str:
        """Return a random sharding that is allowed here."""
        style = style or self.module.style
        if self.parent is not None:
            style = evolve(style, priorities=0)
        return self.module.sharding(shape, without=self.without, style=style)

    def result_values(self, results: Sequence[ResultType]) -> list[GeneratedValue]:
        """Return new values of the given types, named as results of one op."""
        name = self.function.fresh()
        if len(results) == 1:
            return [GeneratedValue(name, *results[0])]
        return [GeneratedValue(f"{name}#{index}", *item) for index, item in enumerate(results)]

    def line(self, text: str) -> None:
        """Add the text of one op."""
        self.lines += text.splitlines()

    def note(
        self, name: str, operands: Sequence[GeneratedValue], results: Sequence[GeneratedValue], *, pinned: bool = False
    ) -> None:
        """Remember what an op uses, so that the function can keep it alive where it must not be dead."""
        self.module.used[name] += 1
        used = {value.name for value in operands} | self.captured
        self.captured = set()
        self.function.consumed |= {value.name for value in operands}
        self.capture(operands)
        for value in results:
            self.live[value.name] = used
        if pinned and results:
            self.pinned.append(results[0])

    def capture(self, values: Sequence[GeneratedValue]) -> None:
        """Remember that ops in this block use values, for the ops around it."""
        block = self.parent
        while block is not None:
            block.captured |= {value.name for value in values}
            block = block.parent


def _priorities(sharding: str) -> str:
    return "p" if any(f"}}p{digit}" in sharding for digit in range(10)) else ""


def left(values: Sequence[GeneratedValue]) -> str:
    """Return the part of an op left of its name."""
    if not values:
        return ""
    return f"{values[0].name} = " if len(values) == 1 else f"{values[0].name.split('#')[0]}:{len(values)} = "


def region_text(
    block: BlockBuilder, arguments: Sequence[GeneratedValue], terminator: str, results: Sequence[GeneratedValue]
) -> str:
    """Return a region of one block: its arguments, its lines, and a terminator in generic form."""
    head = ", ".join(f"{value.name}: {value.type}" for value in arguments)
    names, types = (", ".join(getattr(value, part) for value in results) for part in ("name", "type"))
    block.capture(results)
    lines = [*block.lines, f'"{terminator}"({names}) : ({types}) -> ()']
    return "\n".join([f"^bb0({head}):"] * bool(arguments) + indented(lines))


def scalar_region(block: BlockBuilder, dtypes: Sequence[str], ops: Sequence[str], *, copies: int = 2) -> str:
    """Return a region over scalars, as reductions have it: one op per pair of arguments."""
    inner, values = block.child([((), dtype) for _ in range(copies) for dtype in dtypes], isolated=True)
    results = [
        inner.op(ops[index], [values[index], values[index + len(dtypes)]], [((), dtype)], sharded=False)[0]
        for index, dtype in enumerate(dtypes)
    ]
    return region_text(inner, values, "stablehlo.return", results)
