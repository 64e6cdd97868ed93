"""Random programs that read, write, join and move parts of sharded tensors."""

from __future__ import annotations

from random import Random

AXES = ("x", "y")
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2]>'
INDEX = "tensor<i32>"


class _Writer:
    """Writes one program, op by op."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = []
        self.shapes: dict[str, tuple[int, int]] = {}

    def sharding(self) -> str:
        """Return a random sharding of a matrix."""
        random = self.random
        rows, columns = random.choice((("x", ""), ("", "x"), ("y", ""), ("", "y"), ("x", "y"), ("y", "x"), ("", "")))
        dims = ", ".join(f'{{"{axis}"}}' if axis else "{}" for axis in (rows, columns))
        return f"{{sdy.sharding = #sdy.sharding<@mesh, [{dims}]>}}"

    def add(self, text: str, shape: tuple[int, int]) -> str:
        """Add an op and return the name of its result."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        self.shapes[name] = shape
        return name

    def index(self, size: int) -> str:
        """Return the name of a start: a constant, or the argument."""
        if self.random.random() < 0.3:
            return "%i"
        name = f"%c{len(self.lines)}"
        self.lines.append(f"  {name} = stablehlo.constant dense<{self.random.randint(-1, size)}> : {INDEX}")
        return name

    def step(self) -> None:
        """Add one op on random values."""
        random = self.random
        source = random.choice(list(self.shapes))
        shape = self.shapes[source]
        random.choice((self.cut, self.read, self.write, self.join, self.pad, self.reverse, self.combine))(source, shape)

    def cut(self, source: str, shape: tuple[int, int]) -> None:
        """Slice some rows and columns."""
        starts = [self.random.randrange(size) for size in shape]
        limits = [self.random.randint(start + 1, size) for start, size in zip(starts, shape, strict=True)]
        result = (limits[0] - starts[0], limits[1] - starts[1])
        ranges = ", ".join(f"{start}:{limit}" for start, limit in zip(starts, limits, strict=True))
        self.add(f"stablehlo.slice {source} [{ranges}] : ({_t(shape)}) -> {_t(result)}", result)

    def read(self, source: str, shape: tuple[int, int]) -> None:
        """Slice at two starts."""
        result = (self.random.randint(1, shape[0]), self.random.choice((shape[1], self.random.randint(1, shape[1]))))
        first, second = self.index(shape[0]), self.index(shape[1])
        types = f"({_t(shape)}, {INDEX}, {INDEX}) -> {_t(result)}"
        sizes = f"sizes = [{result[0]}, {result[1]}]"
        self.add(f"stablehlo.dynamic_slice {source}, {first}, {second}, {sizes} : {types}", result)

    def write(self, source: str, shape: tuple[int, int]) -> None:
        """Write a smaller value into another one."""
        fitting = [
            name
            for name, other_shape in self.shapes.items()
            if other_shape[0] <= shape[0] and other_shape[1] <= shape[1] and name != source
        ]
        if not fitting:
            return
        update = self.random.choice(fitting)
        first, second = self.index(shape[0]), self.index(shape[1])
        types = f"({_t(shape)}, {_t(self.shapes[update])}, {INDEX}, {INDEX}) -> {_t(shape)}"
        self.add(f"stablehlo.dynamic_update_slice {source}, {update}, {first}, {second} : {types}", shape)

    def join(self, source: str, shape: tuple[int, int]) -> None:
        """Join two values with as many columns."""
        other = self.random.choice([name for name, other_shape in self.shapes.items() if other_shape[1] == shape[1]])
        result = (shape[0] + self.shapes[other][0], shape[1])
        if result[0] <= 64:
            types = f"({_t(shape)}, {_t(self.shapes[other])}) -> {_t(result)}"
            self.add(f"stablehlo.concatenate {source}, {other}, dim = 0 : {types}", result)

    def pad(self, source: str, shape: tuple[int, int]) -> None:
        """Pad rows with zeros."""
        low, high = self.random.randint(0, 5), self.random.randint(0, 5)
        result = (shape[0] + low + high, shape[1])
        padding = f"low = [{low}, 0], high = [{high}, 0], interior = [0, 0]"
        self.add(f"stablehlo.pad {source}, %zero, {padding} : ({_t(shape)}, tensor<f32>) -> {_t(result)}", result)

    def reverse(self, source: str, shape: tuple[int, int]) -> None:
        """Reverse the rows."""
        self.add(f"stablehlo.reverse {source}, dims = [0] : {_t(shape)}", shape)

    def combine(self, source: str, shape: tuple[int, int]) -> None:
        """Add two values of one shape, or take a sine."""
        other = self.random.choice([name for name, other_shape in self.shapes.items() if other_shape == shape])
        if other == source:
            self.add(f"stablehlo.sine {source} : {_t(shape)}", shape)
        else:
            self.add(f"stablehlo.add {source}, {other} : {_t(shape)}", shape)


def random_program(seed: int) -> str:
    """Return a program with a few matrices, a start, and a result."""
    random = Random(seed)
    writer = _Writer(random)
    shapes = [(random.choice((24, 29, 32)), random.choice((8, 10))) for _ in range(2)]
    arguments = [f"%a{number}: {_t(shape)} {writer.sharding()}" for number, shape in enumerate(shapes)]
    writer.shapes.update({f"%a{number}": shape for number, shape in enumerate(shapes)})
    for _ in range(random.randint(2, 6)):
        writer.step()
    result = list(writer.shapes)[-1]
    type_ = _t(writer.shapes[result])
    head = f"func.func @main({', '.join(arguments)}, %i: {INDEX}) -> ({type_} {writer.sharding()}) {{"
    zero = "  %zero = stablehlo.constant dense<0.0> : tensor<f32>"
    return "\n".join((MESH, head, zero, *writer.lines, f"  return {result} : {type_}", "}"))


def _t(shape: tuple[int, int]) -> str:
    return f"tensor<{shape[0]}x{shape[1]}xf32>"
