"""What stands where in a module, read from its bytecode."""

import pytest

from shardy_py.frontends.mlir import bytecode, import_module, importer, parse_module
from shardy_py.frontends.mlir.bytecode import BytecodeReader
from shardy_py.frontends.mlir.native_reader import has_large_constants

NESTED = """\
func.func @f(%a: tensor<4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<i32>) {
  %0:2 = stablehlo.while(%x = %a, %i = %n) : tensor<4xf32>, tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = "t.region"() ({
      %2 = "t.inner"() : () -> tensor<4xf32>
      "t.empty"(%2) ({}) : (tensor<4xf32>) -> ()
    }) : () -> tensor<4xf32>
    stablehlo.return %1, %i : tensor<4xf32>, tensor<i32>
  }
  builtin.module {
    func.func @g(%b: tensor<8xf32>) {
      return
    }
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<i32>
}
"""
BLOCKS = """\
func.func @f(%a: tensor<2xf32>, %c: i1) -> tensor<2xf32> {
  cf.cond_br %c, ^bb1(%a : tensor<2xf32>), ^bb2
^bb1(%x: tensor<2xf32>):
  return %x : tensor<2xf32>
^bb2:
  %0 = "t.def"() {t.x = 1} : () -> tensor<2xf32>
  cf.br ^bb1(%0 : tensor<2xf32>)
}
"""


def _chain(length):
    """Return a function with so many ops, the last of which uses the results of all others."""
    lines = [f'  %{i} = "t.op"(%{max(i - 1, 0)}, %a) : (f32, f32) -> f32' for i in range(1, length)]
    names, types = ", ".join(f"%{i}" for i in range(length)), ", ".join(["f32"] * length)
    ops = "\n".join(['  %0 = "t.op"(%a, %a) : (f32, f32) -> f32', *lines])
    return f'func.func @f(%a: f32) {{\n{ops}\n  "t.all"({names}) : ({types}) -> ()\n  return\n}}'


def _constant(size):
    """Return a function with a large constant, for which the bytecode has parts with an alignment."""
    values = ", ".join(f"{i}.5" for i in range(size))
    return f"func.func @f() {{\n  %0 = stablehlo.constant dense<[{values}]> : tensor<{size}xf64>\n  return\n}}"


@pytest.fixture(params=["bytecode", "bindings"])
def reader(request, monkeypatch):
    """Both ways to read a module."""
    if request.param == "bindings":
        monkeypatch.setattr(importer, "has_large_constants", lambda natives: True)
        monkeypatch.setattr(importer, "BytecodeReader", None)
    else:
        monkeypatch.setattr(importer, "NativeReader", None)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    "text",
    [
        *(NESTED, BLOCKS, _chain(130), _constant(3), _constant(1000), ""),
        pytest.param(_chain(17_000), marks=pytest.mark.slow, id="numbers of three bytes"),
    ],
)
def test_a_program_is_what_the_bindings_say(text):
    """Names, operands, types and attributes are those of the native ops, however large the numbers in between are."""
    program = import_module(parse_module(text))
    values = {}
    for op in program.walk():
        native = op.handle.native
        for value, native_value in zip(op.results, native.results, strict=True):
            values[native_value] = value
        for region, native_region in zip(op.regions, native.regions, strict=True):
            for block, native_block in zip(region.blocks, native_region.blocks, strict=True):
                values.update(zip(native_block.arguments, block.arguments, strict=True))
    for op in program.walk():
        native = op.handle.native
        assert op.name == native.name
        assert list(op.operands) == [values[operand] for operand in native.operands]
        assert set(op.attributes) == set(native.attributes.keys())
        assert [inner.name for inner in _inside(native)] == [inner.name for inner in _ops_inside(op)]
    assert all(str(value.type) == str(native.type) for native, value in values.items())


def _inside(native):
    return [op.operation for region in native.regions for block in region for op in block]


def _ops_inside(op):
    return [inner for region in op.regions for block in region.blocks for inner in block.ops]


def test_equal_names_types_and_attributes_have_equal_numbers():
    """Two ops that are alike differ in nothing but their operands."""
    reader = BytecodeReader(parse_module(_chain(3)))
    for _ in range(2):  # Into the module and into the function.
        reader.block()
        next(reader.ops(1))
        reader.number()
        reader.number()
    count, arguments = reader.block()
    first, second, third, *_ = list(reader.ops(count))
    assert (count, len(arguments)) == (5, 1)
    assert first[:3] == second[:3] == third[:3]
    assert [list(item[3]) for item in (first, second, third)] == [[0, 0], [1, 0], [2, 0]]


def test_large_bytecode_is_read_in_the_chunks_in_which_it_was_written(monkeypatch):
    """Joined or not, the reader finds the same ops."""
    module = parse_module(_chain(300))
    joined = BytecodeReader(module)
    monkeypatch.setattr("shardy_py.frontends.mlir.bytecode._SMALL", 0)
    assert BytecodeReader(module)._data == joined._data


SAME = """
func.func @f() -> (tensor<3000x3000xf32>, tensor<2xf32>) {
  %0 = stablehlo.constant dense<1.5> : tensor<3000x3000xf32>
  %1 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0, %1 : tensor<3000x3000xf32>, tensor<2xf32>
}
"""


def _large():
    """Return a module with a constant of many different elements."""
    numbers = ", ".join(map(str, range(100)))
    row = ", ".join([f"[{numbers}]"] * 450)
    return f"func.func @f() {{\n  %0 = stablehlo.constant dense<[{row}]> : tensor<450x100xi32>\n  return\n}}"


def _natives(text):
    module = parse_module(text)
    return module, importer._all_ops(module)


def test_large_constants_are_not_copied(monkeypatch):
    """A module whose constants have very many elements is read without its bytecode; one number counts once."""
    monkeypatch.setattr("shardy_py.frontends.mlir.native_reader.LARGE", 40_000)
    monkeypatch.setattr("shardy_py.frontends.mlir.native_reader.MUCH_MEMORY", 1)
    for text, is_large in ((_large(), True), (SAME, False), (NESTED, False)):
        _, natives = _natives(text)
        assert has_large_constants(natives) is is_large
    monkeypatch.setattr(importer, "BytecodeReader", None)
    assert [op.name for op in import_module(parse_module(_large())).walk()][1:] == [
        "stablehlo.constant",
        "func.return",
    ]
    monkeypatch.setattr("shardy_py.frontends.mlir.native_reader.MUCH_MEMORY", 2**60)
    assert not has_large_constants(_natives(_large())[1])


def test_a_module_without_bytecode_is_read_all_the_same(monkeypatch):
    """Where MLIR does not write the version of bytecode that is read here, its bindings are asked."""

    def refuse(module):
        raise ValueError("Unable to honor desired bytecode version 0")

    monkeypatch.setattr(importer, "BytecodeReader", refuse)
    names = [op.name for op in import_module(parse_module(SAME)).walk()]
    assert names == ["func.func", "stablehlo.constant", "stablehlo.constant", "func.return"]


def _encoded(number: int) -> bytes:
    """Return a number as MLIR writes it: the zeros at the end of the first byte tell how many bytes follow."""
    size = next(size for size in range(1, 10) if size == 9 or number < 1 << 7 * size)
    if size == 9:
        return b"\x00" + number.to_bytes(8, "little")
    return (number << size | 1 << size - 1).to_bytes(size, "little")


@pytest.mark.parametrize("count", [0, 1, 3, 130])
def test_numbers_of_any_size_are_read(count: int) -> None:
    """Of each size the least and the largest number come back, and reading ends behind them."""
    sizes = [number for size in range(1, 9) for number in ((1 << 7 * size) - 1, 1 << 7 * size)]
    for first in (0, *sizes, (1 << 64) - 1):
        numbers = [first] * count
        data = b"".join(map(_encoded, [count, *numbers])) + b"\x01"
        assert bytecode._numbers(data, 0) == (numbers, len(data) - 1)
