"""Texts of every kind, broken in every way: each is read, or an error of this package; and none takes long."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import shardy_py as sdy
from shardy_py import layout
from shardy_py.api.specs import parse_spec
from shardy_py.cost.machines.toml import parse_machine
from shardy_py.errors import ShardyError
from shardy_py.indexing import AffineMap, IndexingMap
from shardy_py.schedule.toml import format_schedule, parse_schedule
from shardy_py.sharding import parse
from shardy_py.sharding.hlo.sharding import parse_hlo_sharding
from shardy_py.transforms.pass_names import parse_pipeline

PIECES = [
    '"',
    "\\",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ",",
    ":",
    "=",
    "->",
    "?",
    "@",
    "#",
    "//",
    "/*",
    "*/",
    "...",
]
PIECES += ["\n", " ", "\0", "é", "\ud800", "\udcff", "9" * 5000, "-1", "00", "0x", "1e999", "nan", "inf", "NaN", "true"]
PIECES += [str(2**63), '"x"', '"y":(1)2', "{?}", "z_1", "z_99999999999999999999", "device_ids=[0]", '"""', "[[level]]"]
PIECES += ["f32[", "T(8,128)", "(*)", "E(4)", "S(5)", "SC(", "<=", "[" * 800, "(" * 300, "{" * 2000, "[{" * 300]
NUMBERS = ["0", "-1", "7", "1000000007", str(2**63 - 1), str(2**63), "9" * 5000, "1.5", "1e400", "nan", "0x10"]


def _bind(text: str) -> object:
    spec = sdy.rule(text)
    return spec.bind(
        [(8,) * len(item.dims) for item in spec.operands], [(8,) * len(item.dims) for item in spec.results]
    )


def _shape(text: str) -> object:
    shape = layout.parse_shape(text)
    assert layout.parse_shape(str(shape)) == shape
    return layout.padded_bytes(shape), [layout.footprint(item) for item in layout.arrays(shape)]


def _schedule(text: str) -> object:
    schedule = parse_schedule(text, source="s.toml")
    assert parse_schedule(format_schedule(schedule)) == schedule
    return str(schedule)


KINDS: dict[str, tuple[Callable[[str], Any], list[str]]] = {
    "sharding": (
        parse.parse_tensor_sharding,
        [
            '<@mesh, [{"x", ?}p1, {"y":(1)2}], replicated={"z"}, unreduced={"w"}>',
            '<mesh<["a"=2, "b"=4], device_ids=[1,0,2,3,4,5,6,7]>, [{?}, {}]>',
        ],
    ),
    "mesh": (parse.parse_mesh, ['<["x"=2, "y"=4]>', '<["x"=2], device_ids=[1, 0]>', "<[]>"]),
    "per value": (parse.parse_tensor_sharding_per_value, ['<[<@mesh, [{"x"}]>, <@mesh, [{?}], replicated={"y"}>]>']),
    "rule": (
        parse.parse_op_sharding_rule,
        [
            "<([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}>",
            "<([ij, z_1])->([i]) {i=2, j=3, z_1=4}, custom>",
        ],
    ),
    "attribute": (
        parse.parse_attribute,
        ['#sdy.sharding<@mesh, [{"x"}]>', '#sdy<manual_axes{"x"}>', '#sdy<all_to_all_param_list[{"x"}: 0->1]>'],
    ),
    "einsum": (
        _bind,
        ["i k, k j -> i j", "... i, i -> ...", "b (h g) s d, b h t d -> b (h g) s d", "...1 i ...2 -> i"],
    ),
    "affine map": (
        AffineMap.parse,
        ["(d0, d1)[s0] -> (d0 * 2, d1 - 1)", "affine_map<(d0) -> (d0 floordiv 2, d0 mod 3)>"],
    ),
    "shape": (_shape, ["f32[3,5]{1,0:T(2,2)}", "(f32[2]{0}, s4[4,4]{0,1:E(4)}, token[])", "s32[4]{0:T(2)L(2)SC(0:2)}"]),
    "instruction": (layout.parse_instruction, ['ROOT %a.1 = f32[2]{0} dot(%x, f32[3] %y), c={1}, m={o="a/b"}']),
    "schedule": (
        _schedule,
        [
            'then = "default"\n[[level]]\nname = "a"\nentries = ["b", { names = ["c"], uses = "single" }]\n',
            "a = [1, [2]]\n",
        ],
    ),
    "machine": (
        parse_machine,
        [
            'name = "two"\n[device]\nmemory_bytes = 16e9\nmemory_bandwidth = 8e9\n[device.flops]\ndefault = 5e13\n'
            '[[link]]\nname = "node"\nsize = 2\ntopology = "ring"\nbandwidth = 25e9\n'
        ],
    ),
    "hlo sharding": (
        parse_hlo_sharding,
        ["{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}", "{devices=[2,1]0,1}", "{{replicated}, {manual}}"],
    ),
    "indexing map": (
        IndexingMap.parse,
        ["(d0)[s0] -> (d0 * 2 + s0), domain: d0 in [0, 3], s0 in [0, 1], d0 in [0, 2]"],
    ),
    "spec": (parse_spec, ["x,None", "(x,y),None", '[{"x"}, {?}]']),
    "pipeline": (parse_pipeline, ["builtin.module(sdy-basic-propagate{keep-sharding-rules=true},sdy-close-shardings)"]),
}


XDSL = """\
builtin.module {
  "sdy.mesh"() {sym_name = "mesh", mesh = #sdy.mesh<["a"=2, "b"=4]>} : () -> ()
  func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> tensor<8x4xf32> {
    %c = arith.constant dense<1.0> : tensor<8x4xf32>
    %0 = arith.addf %x, %c : tensor<8x4xf32>
    %1 = "sdy.sharding_constraint"(%0) {sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    func.return %1 : tensor<8x4xf32>
  }
}
"""  # noqa: E501

HLO = """\
HloModule m, entry_computation_layout={(f32[4,8]{0,1:T(8,128)}, s32[])->f32[8]{0}}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

ENTRY %main (p0: f32[4,8], p1: s32[]) -> f32[8] {
  %p0 = f32[4,8]{0,1:T(8,128)} parameter(0), sharding={devices=[2,1]<=[2]}, metadata={op_name="x"}
  %p1 = s32[] parameter(1)
  %c = f32[] constant(0)
  ROOT %r = f32[8]{0} reduce(%p0, %c), dimensions={0}, to_apply=%add
}
"""


def _xdsl_module(text: str) -> object:
    from shardy_py.frontends.xdsl import parse_module

    return sdy.propagate(parse_module(text)).text


def _hlo_module(text: str) -> object:
    return sdy.propagate(f"HloModule {text}", {"x": 2}).text


MODULES: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "xdsl": (_xdsl_module, XDSL, "xdsl"),
    "hlo": (_hlo_module, HLO.removeprefix("HloModule "), "jaxlib"),
}
"""The reader of modules of a kind, one such module, and the library of the reader."""


def mutated(text: str, random_: random.Random, corpus: list[str]) -> str:
    """Return a text with pieces left out, doubled, put in, exchanged, or numbers replaced."""
    for _ in range(random_.choice([1, 1, 2, 4])):
        begin = random_.randrange(len(text) + 1)
        end = min(len(text), begin + random_.choice([1, 2, 5, 20]))
        kind = random_.randrange(6)
        if kind == 0:
            text = text[:begin] + text[end:]
        elif kind == 1:
            text = text[:begin] + random_.choice(PIECES) + text[begin:]
        elif kind == 2:
            text = text[:begin] + text[begin:end] * 50 + text[end:]
        elif kind == 3:
            text = text[:begin] + random_.choice(corpus)[:20] + text[end:]
        elif kind == 4:
            text = text[:begin] + chr(random_.choice([random_.randrange(128), random_.randrange(0x11000)])) + text[end:]
        elif numbers := list(re.finditer(r"\d+", text)):
            place = random_.choice(numbers)
            text = text[: place.start()] + random_.choice(NUMBERS) + text[place.end() :]
    return text


def check(kind: str, count: int) -> None:
    """Read broken texts of a kind; whatever is no error of this package comes out."""
    read, corpus = KINDS[kind]
    random_ = random.Random(kind)
    for _ in range(count):
        with suppress(ShardyError):
            read(mutated(random_.choice(corpus), random_, corpus))


@pytest.mark.parametrize("kind", KINDS)
def test_broken_texts(kind: str) -> None:
    """A few hundred broken texts of each kind."""
    check(kind, 300)


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", KINDS)
def test_many_broken_texts(kind: str) -> None:
    """Tens of thousands of broken texts of each kind; SHARDY_FUZZ_PROGRAMS sets another number, in fifties."""
    check(kind, 50 * int(os.environ.get("SHARDY_FUZZ_PROGRAMS", "400")))


@pytest.mark.parametrize("kind", ["sharding", "attribute", "rule", "einsum", "affine map", "shape", "instruction"])
@pytest.mark.parametrize("piece", ['"', '"\\', "[", "(", " ", "//", "/*", "/*/", "i ", "{?},", '{"x"},', "9"])
def test_long_texts_take_no_longer_than_they_are(kind: str, piece: str) -> None:
    """A text of forty thousand pieces, behind any beginning, is refused; in quadratic time this test would not end."""
    read, corpus = KINDS[kind]
    for text in (piece * 40_000, corpus[0][: len(corpus[0]) // 2] + piece * 40_000):
        with pytest.raises(ShardyError):
            read(text)


def test_numbers_and_tables_of_toml() -> None:
    """Numbers of thousands of digits have a line in their error; tables that are nested deeply are refused."""
    with pytest.raises(ShardyError, match="a number is too long") as error:
        parse_machine(f'name = "a"\nx = {"9" * 5000}', source="m.toml")
    assert error.value.diagnostics[0].location == "m.toml:2"
    with pytest.raises(ShardyError, match="nested too deeply"):
        parse_schedule("a = " + "[" * 5000, source="s.toml")
    with pytest.raises(ShardyError, match="not a text"):
        parse_schedule(None)  # type: ignore[arg-type]


def check_modules(kind: str, count: int) -> None:
    """Propagate broken modules of a kind; whatever is no error of this package comes out."""
    read, module, library = MODULES[kind]
    pytest.importorskip(library)
    assert read(module)
    random_ = random.Random(kind)
    for _ in range(count):
        with suppress(ShardyError):
            read(mutated(module, random_, [module]))


@pytest.mark.parametrize(("kind", "count"), [("xdsl", 200), ("hlo", 6)])
def test_broken_modules(kind: str, count: int) -> None:
    """Broken modules of xDSL and of HLO; each of HLO takes a process of its own, so there are few."""
    check_modules(kind, count)


@pytest.mark.fuzz
@pytest.mark.parametrize(("kind", "share"), [("xdsl", 10), ("hlo", 1)])
def test_many_broken_modules(kind: str, share: int) -> None:
    """Thousands of broken modules of xDSL and hundreds of HLO; SHARDY_FUZZ_PROGRAMS sets other numbers."""
    check_modules(kind, share * int(os.environ.get("SHARDY_FUZZ_PROGRAMS", "400")))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('[{"a"}, {?}]', '[{"a}, {?}]', "a string does not end in its line"),
        ('"b"=4', '"b"=0', "axis size"),
        ("dense<1.0>", f"dense<{'9' * 5000}.0>", "more than 2000 digits"),
        ('[{?}, {"b"}]', '[{?}, {"b" "b"}]', "sharding holds #sdy.sharding"),
        ("builtin.module {", "builtin.module {" * 600, "nested more than"),
        ("@main", "@\udcff", "not valid Unicode"),
    ],
)
def test_broken_xdsl_modules_say_what_is_wrong(old: str, new: str, reason: str) -> None:
    """Texts on which xDSL would hang, or that it lets through, are errors with a reason."""
    pytest.importorskip("xdsl")
    assert old in XDSL
    with pytest.raises(ShardyError, match=reason):
        _xdsl_module(XDSL.replace(old, new))
