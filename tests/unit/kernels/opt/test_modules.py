"""Modules of kernels as users write them: read, run, lowered."""

from __future__ import annotations

import pytest

pytest.importorskip("jaxlib", reason="MLIR's parser reads what is not in the document's form")
pytest.importorskip("xdsl", reason="kernels need the extra 'codegen'")

import numpy as np

from shardy_py.errors import OptionError, ParseError, ShardyError, UnsupportedError, VerificationError
from shardy_py.kernels.device import H100
from shardy_py.kernels.launch.grid import Launch
from shardy_py.kernels.opt.buffers import buffer_uses
from shardy_py.kernels.opt.modules import KernelModule, launch_of_module, parse_sizes, read_module
from shardy_py.kernels.opt.run_module import module_arguments, random_inputs, run_module
from shardy_py.kernels.opt.stages import ModuleStage, find_stage, parse_kernel_pipeline, run_passes
from tests.unit.kernels.opt.modules import GPU, LLVM, TILES

EMPTY_MAP = '#xla_gpu.indexing_map<"() -> (0)">'


@pytest.fixture(scope="module")
def tiles() -> KernelModule:
    """A module with tiles, tensors as values and a body of all threads."""
    return read_module(TILES.replace("ZERO", "0.0"), "tiles.mlir")


@pytest.fixture(scope="module")
def stages(tiles: KernelModule) -> list[ModuleStage]:
    """The module at every stage."""
    return run_passes(tiles, parse_kernel_pipeline("kernel-pipeline"), H100)


@pytest.mark.parametrize("name", ["initial", "lower-to-scf", "flatten-tensors", "lower-tensors", "scf-to-cf"])
def test_tiles_at_several_stages(tiles: KernelModule, stages: list[ModuleStage], name: str) -> None:
    """Tiles, reduced tensors and bodies of all threads compute the same before and behind passes."""
    arguments = module_arguments(tiles)
    x, y, *_ = arrays = random_inputs(arguments, 0)
    kernel = find_stage(stages, name).kernel
    first, second = run_module(kernel, launch_of_module(tiles), arguments, arrays)
    np.testing.assert_allclose(first.array, np.exp(x[:, :2]), rtol=1e-5)
    np.testing.assert_allclose(second.array, y.sum(axis=1), rtol=1e-5)


def test_a_memref_is_refused() -> None:
    """A function that takes a memref is refused with its line, whether or not ops use it."""
    with pytest.raises(VerificationError, match="argument 0 is a memref<8xf32>") as caught:
        read_module("func.func @k(%a: memref<8xf32>) {\n  return\n}", "k.mlir")
    (problem,) = caught.value.diagnostics
    assert problem.location == "k.mlir:1"
    assert "tensor<8xf32>" in problem.hint


def test_every_stage_is_mlir(stages: list[ModuleStage]) -> None:
    """MLIR's own parser reads each of them in generic form, and so does the parser here, with the same result."""
    from jaxlib.mlir import ir

    for stage in stages[::13]:
        text = stage.kernel.print(generic=True)
        with ir.Context() as context:
            context.allow_unregistered_dialects = True
            ir.Module.parse(text)
        assert read_module(text).print() == stage.kernel.print()


@pytest.mark.parametrize(("text", "expected"), [(LLVM, "sums"), (GPU, "copy")], ids=["llvm", "gpu"])
def test_other_dialects(text: str, expected: str) -> None:
    """Functions of ``llvm`` and ``gpu`` run as they are; arguments may come in any order."""
    kernel = read_module(text)
    arguments = module_arguments(kernel)
    arrays = random_inputs(arguments, 1)
    source = next(array for array, argument in zip(arrays, arguments, strict=True) if argument.use.is_read)
    (actual,) = run_module(kernel, launch_of_module(kernel), arguments, arrays)
    expected_rows = source + source[np.arange(32) ^ 16] if expected == "sums" else source
    assert kernel.entry.sym_name.data == expected
    np.testing.assert_array_equal(actual.array, expected_rows)


def test_a_pointer_that_is_stored() -> None:
    """The memory behind it is neither read nor written, and holds no pointers for that."""
    text = """llvm.func @main(%p: !llvm.ptr, %q: !llvm.ptr) attributes {nvvm.kernel} {
      llvm.store %p, %q : !llvm.ptr, !llvm.ptr
      llvm.return
    }"""
    kernel = read_module(text)
    stored, target = buffer_uses(kernel.entry, kernel.functions)
    assert (stored.is_read, stored.is_written, stored.elements) == (False, False, ())
    assert (target.is_read, target.is_written, len(target.elements)) == (False, True, 1)


def test_values_that_threads_return() -> None:
    """Numbers are arguments, too, and what is no memory is returned per thread."""
    text = """func.func @main(%x: tensor<8xi32>, %i: index) -> i32 {
      %t = gpu.thread_id x
      %v = tensor.extract %x[%i] : tensor<8xi32>
      %c = arith.index_cast %t : index to i32
      %r = arith.addi %v, %c : i32
      return %r : i32
    }"""
    kernel = read_module(text)
    with pytest.raises(OptionError, match="does not say how many threads there are along x"):
        launch_of_module(kernel)
    launch = launch_of_module(kernel, threads=parse_sizes("4"))
    assert launch == Launch((1, 1, 1), (4, 1, 1))
    (actual,) = run_module(kernel, launch, module_arguments(kernel), [np.arange(8, dtype=np.int32), np.int64(5)])
    np.testing.assert_array_equal(actual.array, [5, 6, 7, 8])


def test_vectors_that_threads_return() -> None:
    """A vector that is the same for all threads is one per thread, also where it has as many elements as there are."""
    text = """func.func @main() -> vector<4xi32> {
      %v = arith.constant dense<[1, 2, 3, 4]> : vector<4xi32>
      return %v : vector<4xi32>
    }"""
    kernel = read_module(text)
    (result,) = run_module(kernel, launch_of_module(kernel, threads=(4, 1, 1)), [], [])
    np.testing.assert_array_equal(result.array, [[1, 2, 3, 4]] * 4)


def test_a_grid_that_contradicts_the_module(tiles: KernelModule) -> None:
    """The ranges of numbers are what the passes rely on."""
    with pytest.raises(OptionError, match="for 16 threads along x, not for 32"):
        launch_of_module(tiles, threads=(32, 1, 1))


def test_a_reduced_tensor_without_memory() -> None:
    """What no op gives memory is refused by the pass that lowers it."""
    text = """func.func private @add(%a: f32, %b: f32) -> f32 {
      %r = arith.addf %a, %b : f32
      return %r : f32
    }
    func.func @main(%x: tensor<4x8xf32>, %c: f32) -> tensor<4xf32> {
      %s = xla_gpu.reduce(%x) inits(%c) dimensions=[1] combiner=@add : tensor<4x8xf32>
      return %s : tensor<4xf32>
    }"""
    with pytest.raises(UnsupportedError, match="no op says which memory holds it"):
        run_passes(read_module(text), parse_kernel_pipeline("lower-to-scf"), H100)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("func.func @f() {\n  foo.bar\n  return\n}", "f.mlir"),
        (f"func.func @f(%i: index) {{\n  %0 = xla_gpu.apply_indexing {EMPTY_MAP}(%i)\n  return\n}}", "f.mlir"),
        ('module attributes {a = "open} {}', "a string of line 1 does not end in the line"),
    ],
)
def test_malformed_modules(text: str, reason: str) -> None:
    """Errors name the file."""
    with pytest.raises(ParseError, match=reason) as caught:
        read_module(text, "f.mlir")
    assert caught.value.diagnostics[0].location in ("f.mlir", "f.mlir:2")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("%s = xla_gpu.shuffle_reduce(%v) to -16 combiner=@add : f32", "-16 is not a distance of lanes"),
        ("%s = xla_gpu.shuffle_reduce(%v) to 16 combiner=@sum : f32", "the module has no function @sum"),
        ("%s = xla_gpu.pure_call @add(%v) : (f32) -> (f32)", r"@add is a function from \(f32, f32\) to \(f32\)"),
        ("%s, %u = func.call @add(%v, %v) : (f32, f32) -> (f32, f32)", "incorrect number of results"),
        ("%s = func.call @main(%x) : (tensor<32xf32>) -> f32", "recursive functions are not kernels: main -> main"),
        ("%s = tensor.extract %x[%t, %t] : tensor<32xf32>", "2 indices are not a place in tensor<32xf32>"),
        ("%s = tensor.empty() : tensor<?xf32>", r"tensor<\?xf32> has a size that is not known"),
        ("%s = arith.addf %v, %later : f32  %later = arith.negf %v : f32", "operand 1 is not defined there"),
        (
            "%s = scf.if %yes -> (f32) { %y = arith.negf %s : f32 scf.yield %y : f32 } else { scf.yield %v : f32 }",
            "not defined",
        ),
        ("%s = gpu.thread_id y {xla.range = [1 : index]}", r"xla.range = \[1 : index\] is not a least and a greatest"),
        ("%s = arith.constant 1 : i99999999999", "integers have at most 16777215 bits"),
        ("%s = gpu.thread_id y {xla.range = [7 : index, 3 : index]}", "is not a least and a greatest"),
        ("%s = scf.for %i = %t to %t step %zero -> (f32) { scf.yield %v : f32 }", "step 0 has no end"),
        ("%s = scf.if %yes -> (f32) { scf.yield %v : f32 } else { scf.yield %t : index }", r"gives \(index\)"),
        (
            '%s = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 mod 0), domain: d0 in [0, 9]">(%t)',
            "divides by zero",
        ),
        ('%s = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d7)">(%t)', "'d7' is not a variable"),
    ],
)
def test_modules_that_are_not_valid_as_a_whole(body: str, reason: str) -> None:
    """What no op says alone is refused with its line before a pass or the interpreter meets it."""
    text = f"""func.func private @add(%a: f32, %b: f32) -> f32 {{
      %r = arith.addf %a, %b : f32
      return %r : f32
    }}
    func.func @main(%x: tensor<32xf32>) -> f32 {{
      %t = gpu.thread_id x
      %zero = arith.constant 0 : index
      %yes = arith.constant true
      %v = tensor.extract %x[%t] : tensor<32xf32>
      {body.replace("step %zero ->", "step %zero iter_args(%a = %v) ->")}
      return %v : f32
    }}"""
    with pytest.raises(ShardyError, match=reason) as caught:
        read_module(text, "f.mlir")
    assert caught.value.diagnostics[0].location == "f.mlir:10"


def test_a_program_is_no_kernel_module() -> None:
    """A program of StableHLO is refused with the command that makes a module of it."""
    with pytest.raises(ParseError, match=r"stablehlo\.abs is not registered") as caught:
        read_module("func.func @main(%x: tensor<f32>) { %0 = stablehlo.abs %x : tensor<f32> return }")
    assert "shardy emit FILE --stage initial" in caught.value.diagnostics[0].hint


def test_names_like_wide_integers() -> None:
    """Values, functions and attributes may have any name, and strings any text."""
    text = """func.func @i99999999999(%i99999999999: i32)
        attributes {a = #gpu.thread<x>, b.i99999999999, c = "as i99999999999"} { return }"""
    assert read_module(text).entry.sym_name.data == "i99999999999"


def test_a_label_that_stands_twice() -> None:
    """The parser of xDSL ends with an error of Python there, which names the line of the op around it."""
    with pytest.raises(ParseError, match="the parser ends with KeyError") as caught:
        read_module("\nfunc.func @main() { cf.br ^a ^a: cf.br ^a ^a: return }", "f.mlir")
    assert caught.value.diagnostics[0].location == "f.mlir:2"


def test_values_of_blocks_that_branch() -> None:
    """A value may be used in blocks to which all ways lead through its own, and in blocks that nothing leads to."""
    text = """func.func @main(%x: tensor<8xf32>, %c: i1, %v: f32) {
      cf.cond_br %c, ^a, ^b
    ^a:
      %s = arith.negf %v : f32
      cf.br ^c
    ^b:
      %n = arith.negf USED : f32
      cf.br ^c
    ^c:
      return
    ^d:
      %u = arith.negf %s : f32
      %w = arith.addf %u, %z : f32
      %z = arith.negf %w : f32
      cf.br ^c
    }"""
    read_module(text.replace("USED", "%v"))
    read_module(
        text.replace("USED", "%v").replace("br ^c\n    ^b", "br ^b\n    ^b").replace("%c, ^a, ^b", "%c, ^a, ^a")
    )
    with pytest.raises(VerificationError, match="operand 0 is not defined there") as caught:
        read_module(text.replace("USED", "%s"), "f.mlir")
    assert caught.value.diagnostics[0].location == "f.mlir:7"


@pytest.mark.parametrize("body", ["", "cf.br ^a ^a:"])
def test_blocks_that_are_empty(body: str) -> None:
    """Each block of a function ends with an op that leaves it."""
    with pytest.raises(VerificationError, match="a block has no op that ends it") as caught:
        read_module(f"\nfunc.func @main(%x: tensor<8xf32>) {{ {body} }}", "f.mlir")
    assert caught.value.diagnostics[0].location == "f.mlir:2"


def test_functions_that_call_each_other_in_a_ring() -> None:
    """The functions are named in the order of their calls; one that is called twice is no ring."""
    text = """func.func @main() { func.call @f() : () -> () func.call @g() : () -> () return }
    func.func private @f() { func.call @g() : () -> () return }
    func.func private @g() { CALL return }"""
    read_module(text.replace("CALL", ""))
    with pytest.raises(VerificationError, match="not kernels: f -> g -> f"):
        read_module(text.replace("CALL", "func.call @f() : () -> ()"))


def test_a_pass_over_blocks_that_branch() -> None:
    """A pass that takes structured functions says so where it fails on others."""
    kernel = read_module("func.func @main(%x: tensor<8xf32>) { cf.br ^a\n^a:\n return }")
    with pytest.raises(VerificationError, match="functions of one block"):
        run_passes(kernel, parse_kernel_pipeline("lower-tensors"), H100)


@pytest.mark.parametrize(
    ("inputs", "dimensions", "types", "reason"),
    [
        ("%x", "[1, 1]", "tensor<4x8xf32> to tensor<4xf32>", "are not different dimensions"),
        ("%x", "[-1]", "tensor<4x8xf32> to tensor<4x8xf32>", "are not different dimensions"),
        ("%x, %y", "[1]", "tensor<4x8xf32>, tensor<4x2xf32> to tensor<4xf32>, tensor<4xf32>", "different shapes"),
    ],
    ids=["twice", "negative", "shapes"],
)
def test_reductions_that_cannot_be(inputs: str, dimensions: str, types: str, reason: str) -> None:
    """Dimensions are those of all inputs, each once."""
    inits = ", ".join(["%c"] * len(inputs.split()))
    text = f"""func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x2xf32>, %c: f32) {{
      %s:{len(inputs.split())} = xla_gpu.reduce({inputs}) inits({inits}) dimensions={dimensions} combiner=@f : {types}
      return
    }}"""
    with pytest.raises(ParseError, match=reason):
        read_module(text)


def test_an_element_as_a_tensor() -> None:
    """A tensor without dimensions is reindexed, too."""
    text = """func.func @main(%x: tensor<8xf32>, %o: tensor<f32>) -> tensor<f32> {
      %e = xla_gpu.reindex %x at #xla_gpu.indexing_map<"() -> (3)"> : tensor<8xf32> -> tensor<f32>
      %v = tensor.extract %e[] : tensor<f32>
      %r = tensor.insert %v into %o[] : tensor<f32>
      return %r : tensor<f32>
    }"""
    kernel = read_module(text)
    arguments = module_arguments(kernel)
    arrays = [np.arange(8, dtype=np.float32), np.zeros((), np.float32)]
    (result,) = run_module(kernel, launch_of_module(kernel), arguments, arrays)
    assert result.array == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nothing", "there is no pass 'nothing'"),
        ("inline{name=x}", "no option 'name'"),
        ("kernel-pipeline{until=nothing}", "no pass 'nothing'"),
        ("kernel-pipeline{from=inline}", "the only option"),
    ],
)
def test_pipelines_that_do_not_exist(text: str, reason: str) -> None:
    """Unknown passes and options are errors that say what there is."""
    with pytest.raises(OptionError, match=reason):
        parse_kernel_pipeline(text)


def test_a_part_of_the_pipeline() -> None:
    """It ends with the pass of a name or number."""
    first, second = (parse_kernel_pipeline(f"kernel-pipeline{{until={last}}}") for last in ("inline", "7"))
    assert first == second
    assert [item.name for item in first[-2:]] == ["lower-to-scf", "inline"]
    (item,) = parse_kernel_pipeline("optimize-loops{max-ops=8}")
    assert item.max_ops == 8  # type: ignore[attr-defined]
