"""Random programs of the toy dialect of `region_dialect`: branches, loops, scans, bodies of fused ops, calls."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

Shape = tuple[int, ...]
Scope = list[tuple[str, Shape]]


def make_program(seed: int) -> str:
    """Return the text of the program of a seed."""
    return _Writer(Random(seed)).write()


class _Writer:
    """Writes one program."""

    def __init__(self, random: Random) -> None:
        self.random = random
        # Few sizes, so that ops find values of the shapes that they need.
        self.sizes = random.sample((2, 3, 4, 5, 6, 8), random.choice((2, 2, 3)))
        self.axes = {"x": random.choice((2, 2, 3)), "y": random.choice((1, 2, 2))}
        self.count = 0
        self.nesting = 0
        self.groups: dict[Shape, int] = {}
        self.functions: list[str] = []

    def write(self) -> str:
        random = self.random
        scope: Scope = []
        arguments = []
        for _ in range(random.randint(2, 5)):
            shape = self._shape()
            arguments.append(self._argument(scope, shape))
        conditions = [("%condition", ()), ("%conditions", (4,))]
        arguments += [
            "%condition: tensor<i1>",
            f"%conditions: tensor<4xi1> {self._attribute((4,))}",
        ]
        self.conditions = conditions
        lines: list[str] = []
        for _ in range(random.randint(2, 5)):
            self._op(lines, scope, self._shape(), 2)
        returned = random.sample(scope, min(len(scope), random.randint(1, 3)))
        types = [_type(shape) for _, shape in returned]
        declared = [f"{text} {self._attribute(shape)}" for text, (_, shape) in zip(types, returned, strict=True)]
        ids = list(range(self.axes["x"] * self.axes["y"]))
        random.shuffle(ids)
        axes = ", ".join(f'"{name}"={size}' for name, size in self.axes.items())
        order = f", device_ids=[{', '.join(map(str, ids))}]" if ids != sorted(ids) else ""
        return "\n".join(
            [
                f"sdy.mesh @mesh = <[{axes}]{order}>",
                f"func.func @main({', '.join(arguments)}) -> ({', '.join(declared)}) {{",
                *lines,
                f"return {', '.join(name for name, _ in returned)} : {', '.join(types)}",
                "}",
                *self.functions,
            ]
        )

    def _argument(self, scope: Scope, shape: Shape) -> str:
        name = self._name()
        scope.append((name, shape))
        return f"{name}: {_type(shape)} {self._attribute(shape)}"

    def _name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def _shape(self) -> Shape:
        return tuple(self.random.choice(self.sizes) for _ in range(self.random.choice((1, 2, 2))))

    def _sharding(self, shape: Shape) -> str:
        """Return a random sharding."""
        axes = [name for name in self.axes if self.random.random() < 0.8]
        self.random.shuffle(axes)
        dims: list[list[str]] = [[] for _ in shape]
        for axis in axes:
            if dims:
                self.random.choice(dims).append(f'"{axis}"')
        opened = [[*dim, "?"] if self.random.random() < 0.3 else dim for dim in dims]
        return f"<@mesh, [{', '.join('{' + ', '.join(dim) + '}' for dim in opened)}]>"

    def _attribute(self, shape: Shape) -> str:
        return f"{{sdy.sharding = #sdy.sharding{self._sharding(shape)}}}" if self.random.random() < 0.75 else ""

    def _annotation(self, shapes: Sequence[Shape]) -> str:
        """Return shardings for the results of an op, or nothing."""
        if self.random.random() < 0.85:
            return ""
        return f" {{sdy.sharding = #sdy.sharding_per_value<[{', '.join(map(self._sharding, shapes))}]>}}"

    def _pick(self, lines: list[str], scope: Scope, shape: Shape, depth: int) -> str:
        """Return a value of a shape: one that is there, or that of a new op."""
        known = [name for name, known_shape in scope if known_shape == shape]
        if known and self.random.random() < 0.9:
            return self.random.choice(known[-4:])
        if depth > 0 and self.random.random() < 0.5:
            return self._op(lines, scope, shape, depth - 1)
        return self._plain(lines, scope, "constant", [], shape)

    def _emit(
        self,
        lines: list[str],
        scope: Scope,
        name: str,
        operands: Sequence[tuple[str, str]],
        results: Sequence[Shape],
        regions: Sequence[str] = (),
    ) -> list[str]:
        """Add an op, and return its results."""
        result_name = self._name()
        names = [result_name] if len(results) == 1 else [f"{result_name}#{number}" for number in range(len(results))]
        left = result_name if len(results) == 1 else f"{result_name}:{len(results)}"
        bodies = f" ({', '.join(regions)})" if regions else ""
        types = ", ".join(_type(shape) for shape in results)
        values, kinds = ", ".join(value for value, _ in operands), ", ".join(kind for _, kind in operands)
        lines.append(f'{left} = "toy.{name}"({values}){bodies}{self._annotation(results)} : ({kinds}) -> ({types})')
        scope += zip(names, results, strict=True)
        return names

    def _plain(
        self, lines: list[str], scope: Scope, name: str, operands: Sequence[tuple[str, Shape]], shape: Shape
    ) -> str:
        typed = [(value, _type(shape_of_operand)) for value, shape_of_operand in operands]
        return self._emit(lines, scope, name, typed, [shape])[0]

    def _op(self, lines: list[str], scope: Scope, shape: Shape, depth: int) -> str:
        """Add an op whose first result has a shape, and return that."""
        random = self.random
        if random.random() < 0.05:
            direction = random.choice(("NONE", "FORWARD", "BACKWARD"))
            value, result_name = self._pick(lines, scope, shape, depth), self._name()
            lines.append(
                f"{result_name} = sdy.propagation_barrier {value} allowed_direction={direction} : {_type(shape)}"
            )
            scope.append((result_name, shape))
            return result_name
        if random.random() < 0.05:
            value = self._pick(lines, scope, shape, depth)
            number = self.groups.setdefault(shape, len(self.groups))
            lines.append(f"sdy.sharding_group {value} group_id={number} : {_type(shape)}")
        if random.random() < 0.12:
            value, result_name = self._pick(lines, scope, shape, depth), self._name()
            lines.append(f"{result_name} = sdy.sharding_constraint {value} {self._sharding(shape)} : {_type(shape)}")
            scope.append((result_name, shape))
            return result_name
        if depth > 0 and random.random() < 0.5:
            return random.choice(
                (
                    self._loop,
                    self._loop_table,
                    self._scan,
                    self._scan,
                    self._branch,
                    self._branch,
                    self._fused,
                    self._fused_scalars,
                    self._unknown,
                    # MLIR does not find a function from within an op that it does not know.
                    self._unknown if self.nesting else self._call,
                )
            )(lines, scope, shape, depth - 1)
        size = random.choice(self.sizes)
        kinds: list[tuple[str, list[Shape]]] = [
            (random.choice(("half", "tanh")), [shape]),
            (random.choice(("mean", "product")), [shape, shape]),
            ("flip", [shape]),
        ]
        if len(shape) == 2:
            rows, columns = shape
            kinds += [
                ("matmul", [(rows, size), (size, columns)]),
                ("transpose", [(columns, rows)]),
                ("bias", [shape, (columns,)]),
                ("cumsum", [shape]),
                ("lookup", [shape, (size,)]),
                ("form", [shape]),
            ]
        else:
            kinds += [("sum", [(*shape, size)]), ("max", [(*shape, size)])] * (len(shape) == 1)
        name, shapes = random.choice(kinds)
        return self._plain(
            lines,
            scope,
            name,
            [(self._pick(lines, scope, operand_shape, depth), operand_shape) for operand_shape in shapes],
            shape,
        )

    def _region(
        self, scope: Scope, arguments: Sequence[Shape], yielded: Sequence[Shape], depth: int, *, captures: bool = True
    ) -> str:
        """Return a region."""
        inner_scope: Scope = [(self._name(), shape) for shape in arguments]
        inner: Scope = [*(scope if captures else ()), *inner_scope]
        header = ", ".join(f"{name}: {_type(shape)}" for name, shape in inner_scope)
        lines: list[str] = []
        self.nesting += 1
        for _ in range(self.random.randint(0, 2)):
            self._op(lines, inner, self._shape(), depth)
        ends = []
        for shape in yielded:
            last = [name for name, known in inner_scope if known == shape]
            use_argument = last and self.random.random() < 0.3
            ends.append(self.random.choice(last) if use_argument else self._op(lines, inner, shape, depth))
        self.nesting -= 1
        types = ", ".join(map(_type, yielded))
        end = f'"toy.yield"({", ".join(ends)}) : ({types}) -> ()'
        return "\n".join(["{", f"^bb0({header}):" if inner_scope else "", *lines, end, "}"]).replace("\n\n", "\n")

    def _values(self, lines: list[str], scope: Scope, shapes: Sequence[Shape], depth: int) -> list[tuple[str, str]]:
        return [(self._pick(lines, scope, shape, depth), _type(shape)) for shape in shapes]

    def _loop(self, lines: list[str], scope: Scope, shape: Shape, depth: int) -> str:
        shapes = [shape, *(self._shape() for _ in range(self.random.randint(0, 1)))]
        values = self._values(lines, scope, shapes, depth)
        return self._emit(lines, scope, "loop", values, shapes, [self._region(scope, shapes, shapes, depth)])[0]

    def _loop_table(self, lines: list[str], scope: Scope, shape: Shape, depth: int) -> str:
        values = self._values(lines, scope, [(self.random.choice(self.sizes),), shape], depth)
        return self._emit(lines, scope, "loop_table", values, [shape], [self._region(scope, [shape], [shape], depth)])[
            0
        ]

    def _scan(self, lines: list[str], scope: Scope, shape: Shape, depth: int) -> str:
        row, output, rounds = self._shape(), self._shape(), self.random.choice(self.sizes[:2])
        values = self._values(lines, scope, [shape, (rounds, *row)], 0)
        region = self._region(scope, [shape, row], [shape, output], depth)
        name = self.random.choice(("scan", "scan_first"))
        return self._emit(lines, scope, name, values, [shape, (rounds, *output)], [region])[0]

    def _branch(self, lines: list[str], scope: Scope, shape: Shape, depth: int) -> str:
        name, kind = self.random.choice(self.conditions)
        shapes = [shape, *(self._shape() for _ in range(self.random.randint(0, 1)))]
        taken = [self._shape() for _ in range(self.random.randint(0, 2))]
        condition = (name, _type(kind, "i1"))
        values = [condition, *self._values(lines, scope, taken, depth)]
        regions = [self._region(scope, taken, shapes, depth) for _ in range(2)]
        op = self.random.choice(("branch", "branch_edges"))
        return self._emit(lines, scope, op, values, shapes, regions)[0]

    def _fused(self, lines: list[str], scope: Scope, shape: Shape, depth: int) -> str:
        shapes = [shape, shape]
        values = self._values(lines, scope, shapes, depth)
        return self._emit(lines, scope, "fused", values, [shape], [self._region(scope, shapes, [shape], depth)])[0]

    def _fused_scalars(self, lines: list[str], scope: Scope, shape: Shape, depth: int) -> str:
        values = self._values(lines, scope, [shape], depth)
        argument, result = self._name(), self._name()
        region = "\n".join(
            [
                "{",
                f"^bb0({argument}: tensor<f32>):",
                f'{result} = "toy.{self.random.choice(("half", "tanh"))}"({argument}) : (tensor<f32>) -> tensor<f32>',
                f'"toy.yield"({result}) : (tensor<f32>) -> ()',
                "}",
            ]
        )
        return self._emit(lines, scope, "fused_scalars", values, [shape], [region])[0]

    def _unknown(self, lines: list[str], scope: Scope, shape: Shape, depth: int) -> str:
        taken = [self._shape() for _ in range(self.random.randint(0, 2))]
        shapes = [shape, *(self._shape() for _ in range(self.random.randint(0, 1)))]
        values = self._values(lines, scope, taken, depth)
        return self._emit(lines, scope, "unknown", values, shapes, [self._region(scope, taken, shapes, depth)])[0]

    def _call(self, lines: list[str], scope: Scope, shape: Shape, depth: int) -> str:
        """Add a call of a new function, or two of them."""
        taken = [self._shape() for _ in range(self.random.randint(1, 2))]
        name, conditions = f"@f{len(self.functions)}", self.conditions
        self.functions.append("")
        inner_scope: Scope = []
        arguments = [self._argument(inner_scope, item) for item in taken]
        self.conditions = [("%condition", ())]
        inner = ['%condition = "toy.constant"() : () -> tensor<i1>']
        returned = self._op(inner, inner_scope, shape, depth)
        self.conditions = conditions
        body = "\n".join([*inner, f"return {returned} : {_type(shape)}"])
        number = int(name[2:])
        result = f"({_type(shape)} {self._attribute(shape)})"
        self.functions[number] = f"func.func private {name}({', '.join(arguments)}) -> {result} {{\n{body}\n}}"
        result_name = ""
        for _ in range(self.random.randint(1, 2)):
            values = self._values(lines, scope, taken, depth)
            result_name = self._name()
            names, kinds = ", ".join(value for value, _ in values), ", ".join(kind for _, kind in values)
            lines.append(f"{result_name} = call {name}({names}) : ({kinds}) -> {_type(shape)}")
            scope.append((result_name, shape))
        return result_name


def _type(shape: Shape, dtype: str = "f32") -> str:
    return f"tensor<{'x'.join([*map(str, shape), dtype])}>"
