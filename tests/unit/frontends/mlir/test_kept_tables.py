"""What the numbers in bytecode mean, kept from run to run, against reading it from each module."""

import gc

import pytest
from jaxlib.mlir import ir

from shardy_py.frontends.mlir import import_module, importer, parse_module, print_module, write_back
from shardy_py.frontends.mlir.kept_tables import MANY_TABLES, TableMemory
from shardy_py.ir.graph.attributes import symbols_in
from shardy_py.ir.graph.kinds import kind_of
from shardy_py.ir.graph.program import Op

TEXT = """\
module {
  sdy.mesh @m = <["x"=2]>
  func.func private @f(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>, t.n = 1 : i8}) -> tensor<4xf32> {
    %c = stablehlo.constant dense<1.0> : tensor<4xf32>
    %i = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
    %z = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
    %0 = stablehlo.add %a, %c {t.who = @g, t.list = [1, "@m", [2.0 : f32]], t.unit} : tensor<4xf32>
    %1:2 = "t.two"(%0, %i) ({
      %3 = "t.inner"(%0) {n = 3 : i32, d = {a = 1}} : (tensor<4xf32>) -> !t.other
      "t.yield"(%3) : (!t.other) -> ()
    }) {n = 3 : i32} : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<?xf32, #stablehlo.bounds<4>>)
    %2 = stablehlo.multiply %1#0, %c : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
  func.func @g(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @f(%a) {t.width = 7 : i8} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""


@pytest.fixture
def memory(monkeypatch):
    """An empty memory in the place of the process's."""
    memory = TableMemory()
    monkeypatch.setattr(importer, "KEPT", memory)
    return memory


def _import(text=TEXT):
    return import_module(parse_module(text))


def _read(program):
    """All that passes see of the ops; the reference is a program that was imported with an empty memory."""
    return [
        (
            op.name,
            [str(value.type) for value in (*op.operands, *op.results)],
            [(name, str(value)) for name, value in op.attributes.items()],
            list(symbols_in(op.attributes)),
            getattr(op.attributes, "key", None) and op.attributes.key.look,
        )
        for op in program.walk()
    ]


def _find(program, name) -> Op:
    return next(op for op in program.walk() if op.name == name)


def test_each_run_reads_the_same(memory):
    """The first run learns the tables, the second one decodes all attributes, and later ones take these."""
    expected, names = _read(_import()), _import().attribute_names
    for _ in range(3):
        program = _import()
        assert _read(program) == expected
        assert program.attribute_names == names
        assert program.op_names == {name for name, *_ in expected}
        assert program.has_foreign_types is None
    assert _find(program, "t.inner").attributes.base.native
    assert not _find(program, "t.two").attributes.base.native


def test_other_ops_with_the_same_tables(memory):
    """The tables do not say which op stands where, nor what it uses."""
    texts = [
        f"func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\n  return %1 : tensor<4xf32>\n}}"
        for body in (
            "  %0 = stablehlo.add %a, %a : tensor<4xf32>\n  %1 = stablehlo.multiply %0, %a : tensor<4xf32>",
            "  %0 = stablehlo.add %a, %a : tensor<4xf32>\n  %1 = stablehlo.multiply %0, %0 : tensor<4xf32>",
        )
    ]
    for text in texts * 2:
        program = _import(text)
        assert [op.name for op in program.walk()][2:4] == ["stablehlo.multiply", "func.return"]
        assert print_module(write_back(program)) == print_module(parse_module(text))
        numbers = [[value.id for value in op.operands] for op in program.walk()][2]
        assert len(set(numbers)) == (1 if "%0, %0" in text else 2)


def test_no_native_object_is_kept(memory):
    """Nothing of a module or a context of MLIR can be reached from what is kept."""
    for _ in range(3):
        write_back(_import())
    seen, waiting = set(), [memory]
    while waiting:
        item = waiting.pop()
        if id(item) not in seen and not isinstance(item, type) and not callable(item):
            seen.add(id(item))
            assert not type(item).__module__.startswith("jaxlib"), item
            waiting += gc.get_referents(item)
    assert len(seen) > 50


def test_numbers_keep_their_width_in_every_run(memory):
    """A changed attribute becomes what it was natively, although only its value is known by then."""
    for _ in range(4):
        program = _import()
        _find(program, "t.two").attributes["n"] = 5
        _find(program, "func.call").attributes["t.more"] = True
        text = print_module(write_back(program))
        assert "n = 5 : i32" in text
        assert "{t.more = true, t.width = 7 : i8}" in text


def test_attributes_outlive_the_op_that_had_them_first(memory):
    """Of two ops with the same attributes the first is erased; the other one is written later."""
    text = """\
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "t.one"(%a) {n = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "t.one"(%a) {n = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
    for _ in range(4):
        program = _import(text)
        first, second = [op for op in program.walk() if op.name == "t.one"]
        first.erase()
        write_back(program)
        second.attributes["n"] = 4
        assert '"t.one"(%arg0) <{' not in print_module(write_back(program))
        assert "n = 4 : i32" in print_module(write_back(program))


def test_a_shared_value_cannot_be_changed_in_place(memory):
    """A dictionary is decoded anew in each run, as somebody might write to it."""
    for _ in range(4):
        attributes = _find(_import(), "t.inner").attributes
        assert attributes["d"] == {"a": 1}
        attributes["d"]["a"] = 2


def test_the_last_modules_are_kept():
    """Those that were used longest ago go first; tables without bytes are those of nobody."""
    memory = TableMemory()
    tables = {number: memory.of(bytes([number])) for number in range(MANY_TABLES)}
    assert memory.of(b"\0") is tables[0]
    memory.of(b"new")
    assert memory.of(b"\0") is tables[0]
    assert memory.of(b"\1") is not tables[1]
    assert memory.of(b"") is not memory.of(b"")


def test_constants_that_are_large_are_not_kept(memory, monkeypatch):
    """The bytes of all tables are part of the key, so that there is a limit on them."""
    monkeypatch.setattr("shardy_py.frontends.mlir.bytecode._SMALL", 100)
    expected = _read(_import())
    assert _read(_import()) == expected
    assert not memory._kept
    assert isinstance(_find(_import(), "stablehlo.add").attributes.base.native["t.who"], ir.Attribute)


def test_ops_are_read_with_their_kinds(memory):
    """A kind has the name and the types of its ops; where values come later, it is found when it is asked for."""
    text = f"""{TEXT}
"t.graph"() ({{
  %0 = "t.early"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "t.late"() : () -> tensor<4xf32>
}}) : () -> ()
"""
    for _ in range(3):
        program = _import(text)
        program.kinds_hold = True
        read = {op.name for op in program.walk() if op.attributes.kind is not None}
        assert {"t.two", "t.inner", "stablehlo.add", "func.return"} <= read
        assert "t.early" not in read
        for op in program.walk():
            kind = kind_of(op)
            if kind is not None:
                assert kind.name == op.name
                assert kind.types == [value.type for value in (*op.operands, *op.results)]
        assert kind_of(_find(program, "t.early")) is not None
