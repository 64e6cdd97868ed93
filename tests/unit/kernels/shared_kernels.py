"""Kernels whose threads share memory, as text: a transpose, reductions over lanes and warps, atomic updates."""

from __future__ import annotations

from shardy_py.kernels.launch.grid import Launch

_ARGUMENT = (
    "{{xla.slice_index = {slice} : index, llvm.align = 16 : index, llvm.dereferenceable = {size} : index{more}}}"
)


def argument(slice_: int, size: int, *, is_read: bool = False) -> str:
    """The attributes of an argument of an entry function."""
    return _ARGUMENT.format(slice=slice_, size=size, more=", xla.invariant" if is_read else "")


TRANSPOSE = f"""builtin.module {{
  func.func @transpose(%x: tensor<50x70xf32> {argument(0, 14000, is_read=True)},
      %o: tensor<70x50xf32> {argument(1, 14000)}) -> tensor<70x50xf32> attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, 127 : index]}}
    %bl = gpu.block_id x {{xla.range = [0 : index, 5 : index]}}
    %tile = xla_gpu.allocate_shared : tensor<32x33xf32>
    %written = xla_gpu.loop (%th, %bl)[%i] -> (%a, %b, %c, %d) in #xla_gpu.indexing_map<
        "(th_x, bl_x)[s0] -> ((bl_x floordiv 3) * 32 + s0 * 4 + th_x floordiv 32, (bl_x mod 3) * 32 + th_x mod 32, "
        "th_x mod 32, s0 * 4 + th_x floordiv 32), domain: th_x in [0, 127], bl_x in [0, 5], s0 in [0, 7], "
        "(bl_x floordiv 3) * 32 + s0 * 4 + th_x floordiv 32 in [0, 49], (bl_x mod 3) * 32 + th_x mod 32 in [0, 69]">
        iter_args(%s = %tile) -> (tensor<32x33xf32>) {{
      %v = tensor.extract %x[%a, %b] : tensor<50x70xf32>
      %n = arith.negf %v : f32
      %w = tensor.insert %n into %s[%c, %d] : tensor<32x33xf32>
      xla_gpu.yield %w : tensor<32x33xf32>
    }}
    %shared = xla_gpu.sync_threads %written : tensor<32x33xf32>
    %r = xla_gpu.loop (%th, %bl)[%i] -> (%a, %b, %c, %d) in #xla_gpu.indexing_map<
        "(th_x, bl_x)[s0] -> ((bl_x mod 3) * 32 + s0 * 4 + th_x floordiv 32, (bl_x floordiv 3) * 32 + th_x mod 32, "
        "s0 * 4 + th_x floordiv 32, th_x mod 32), domain: th_x in [0, 127], bl_x in [0, 5], s0 in [0, 7], "
        "(bl_x mod 3) * 32 + s0 * 4 + th_x floordiv 32 in [0, 69], (bl_x floordiv 3) * 32 + th_x mod 32 in [0, 49]">
        iter_args(%s = %o) -> (tensor<70x50xf32>) {{
      %v = tensor.extract %shared[%c, %d] : tensor<32x33xf32>
      %w = tensor.insert %v into %s[%a, %b] : tensor<70x50xf32>
      xla_gpu.yield %w : tensor<70x50xf32>
    }}
    func.return %r : tensor<70x50xf32>
  }}
}}"""
TRANSPOSE_LAUNCH = Launch((6, 1, 1), (128, 1, 1))

# A row of 256 elements a block, by four warps: lanes, then the first lane of each warp, then the first warp.
ROWS = """builtin.module {{
  func.func @rows(%x: tensor<6x256x{type}> {input}, %o: tensor<6x{type}> {output}) -> tensor<6x{type}>
      attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, 127 : index]}}
    %bl = gpu.block_id x {{xla.range = [0 : index, 5 : index]}}
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %zero = {zero}
    %tile = xla_gpu.allocate_shared : tensor<1x4x{type}>
    %own = xla_gpu.loop (%th, %bl)[%i, %k] -> (%a, %b) in #xla_gpu.indexing_map<
        "(th_x, bl_x)[s0, s1] -> (bl_x, th_x + s0 * 128), "
        "domain: th_x in [0, 127], bl_x in [0, 5], s0 in [0, 1], s1 in [0, 0]">
        iter_args(%s = %zero) -> ({type}) {{
      %v = tensor.extract %x[%a, %b] : tensor<6x256x{type}>
      %w = xla_gpu.pure_call @sum(%s, %v) : ({type}, {type}) -> {type}
      xla_gpu.yield %w : {type}
    }}
    %warp = xla_gpu.shuffle_reduce(%own) to 16 combiner=@sum : {type}
    %lane = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 mod 32), domain: d0 in [0, 127]">(%th)
    %number = xla_gpu.apply_indexing #xla_gpu.indexing_map<"(d0) -> (d0 floordiv 32), domain: d0 in [0, 127]">(%th)
    %first = arith.cmpi eq, %lane, %c0 : index
    %kept = xla_gpu.predicated_insert %warp into %tile[%c0, %number] if %first : tensor<1x4x{type}>
    %all = xla_gpu.sync_threads %kept : tensor<1x4x{type}>
    %few = arith.cmpi slt, %th, %c4 : index
    %part = xla_gpu.predicated_extract %all[%c0, %lane] if %few else %zero : tensor<1x4x{type}>
    %whole = xla_gpu.shuffle_reduce(%part) to 16 combiner=@sum : {type}
    %is_first = arith.cmpi eq, %th, %c0 : index
    %r = xla_gpu.predicated_insert %whole into %o[%bl] if %is_first : tensor<6x{type}>
    func.return %r : tensor<6x{type}>
  }}
  func.func private @sum(%a: {type}, %b: {type}) -> {type} {{
    %s = {add} %a, %b : {type}
    func.return %s : {type}
  }}
}}"""
ROWS_LAUNCH = Launch((6, 1, 1), (128, 1, 1))


def rows(type_: str, bytes_: int) -> str:
    """The sums of the rows of a matrix of 6 x 256 elements."""
    zero = f"arith.constant 0.0 : {type_}" if "f" in type_ else f"arith.constant 0 : {type_}"
    add = "arith.addf" if "f" in type_ else "arith.addi"
    if "complex" in type_:
        zero, add = f"complex.constant [0.0 : f32, 0.0 : f32] : {type_}", "complex.add"
    sizes = argument(0, 6 * 256 * bytes_, is_read=True), argument(1, 6 * bytes_)
    return ROWS.format(type=type_, zero=zero, add=add, input=sizes[0], output=sizes[1])


UPDATES = """builtin.module {{
  func.func @updates(%x: tensor<8x2x{type}> {written}, %at: tensor<200xi32> {indices}, %u: tensor<200x2x{type}> {read},
      %o: tensor<8x2x{type}> {written}) -> tensor<8x2x{type}> attributes {{xla.entry}} {{
    %th = gpu.thread_id x {{xla.range = [0 : index, 63 : index]}}
    %bl = gpu.block_id x {{xla.range = [0 : index, 6 : index]}}
    %c8 = arith.constant 8 : index
    %r = xla_gpu.loop (%th, %bl)[%i] -> (%a, %b) in #xla_gpu.indexing_map<
        "(th_x, bl_x)[s0] -> (bl_x * 32 + th_x floordiv 2, th_x mod 2), "
        "domain: th_x in [0, 63], bl_x in [0, 6], s0 in [0, 0], bl_x * 32 + th_x floordiv 2 in [0, 199]">
        iter_args(%s = %o) -> (tensor<8x2x{type}>) {{
      %n = tensor.extract %at[%a] : tensor<200xi32>
      %j = arith.index_castui %n : i32 to index
      %inside = arith.cmpi ult, %j, %c8 : index
      %f = scf.if %inside -> (tensor<8x2x{type}>) {{
        %v = tensor.extract %u[%a, %b] : tensor<200x2x{type}>
        %w = xla_gpu.atomic_rmw %s[%j, %b] : tensor<8x2x{type}> {{
        ^bb0(%current: {type}):
          {body}
        }}
        scf.yield %w : tensor<8x2x{type}>
      }} else {{
        scf.yield %s : tensor<8x2x{type}>
      }}
      xla_gpu.yield %f : tensor<8x2x{type}>
    }}
    func.return %r : tensor<8x2x{type}>
  }}
}}"""
UPDATES_LAUNCH = Launch((7, 1, 1), (64, 1, 1))


def updates(type_: str, bytes_: int, op: str = "") -> str:
    """Atomic updates of 8 rows by 200 rows, at the rows that indices name; those that name none are left out.

    Args:
        type_: The type of an element.
        bytes_: Its size.
        op: The operation; without one the element is overwritten.
    """
    body = f"%new = {op} %current, %v : {type_}\n          xla_gpu.yield %new : {type_}"
    arguments = {
        "written": argument(0, 16 * bytes_),
        "indices": argument(1, 800, is_read=True),
        "read": argument(2, 400 * bytes_, is_read=True),
    }
    return UPDATES.format(type=type_, body=body if op else f"xla_gpu.yield %v : {type_}", **arguments)
