"""Modules of kernels for the tests of ``emit-opt``, as texts."""

from __future__ import annotations

TILES = """
#tile = #xla_gpu.indexing_map<(d0, d1)[s0, s1] -> (d1*32+d0*2+s0, s1),
  domain: d0 in [0, 15], d1 in [0, 0], s0 in [0, 1], s1 in [0, 1], is_simplified: false>
#own = #xla_gpu.indexing_map<"(d0, d1)[s0, s1] -> (d0*2+s0, s1),"
  "domain: d0 in [0, 15], d1 in [0, 0], s0 in [0, 1], s1 in [0, 1]">
#same = #xla.indexing_map<"(d0, d1) -> (d0, d1), domain: d0 in [0, 31], d1 in [0, 1]">
#padded = #xla_gpu.indexing_map<"(d0, d1, d2) -> (d0, d1*4+d2),
  domain: d0 in [0, 31], d1 in [0, 1], d2 in [0, 3], d1 * 4 + d2 in [0, 6]">
func.func private @exp(%p0: tensor<32x64xf32>, %i: index, %j: index) -> f32 {
  %e = tensor.extract %p0[%i, %j] : tensor<32x64xf32>
  %r = math.exp %e : f32
  return %r : f32
}
func.func private @add(%a: f32, %b: f32) -> f32 {
  %r = arith.addf %a, %b : f32
  return %r : f32
}
func.func @main(%x: tensor<32x64xf32>, %y: tensor<32x7xf32>, %o: tensor<32x2xf32>, %p : tensor<32xf32>)
    -> (tensor<32x2xf32>, tensor<32xf32>) attributes {xla_gpu.launch_grid =
      #xla_gpu.launch_grid<block_counts = [1, 1, 1], thread_counts = [16, 1, 1]>} {
  %i = gpu.thread_id x
  %j = gpu.block_id x
  %0 = xla_gpu.materialize @exp(%x) at #tile(%i, %j)
    : (tensor<32x64xf32>) -> !xla_gpu.indexed_vector<32x2xf32, #own>
  %1 = xla_gpu.insert %0(%i, %j) into %o at #same : <32x2xf32, #own> -> tensor<32x2xf32>
  %c = arith.constant ZERO : f32
  %re = xla_gpu.reindex %y at #padded default %c : tensor<32x7xf32> -> tensor<32x2x4xf32>
  %s = xla_gpu.reduce(%re) inits(%c) dimensions=[1, 2] combiner=@add : tensor<32x2x4xf32> to tensor<32xf32>
  %f = scf.forall (%t) in (16) shared_outs(%out = %p) -> (tensor<32xf32>) {
    %k = arith.constant 16 : index
    %t2 = arith.addi %t, %k : index
    %v = tensor.extract %s[%t] : tensor<32xf32>
    %v2 = tensor.extract %s[%t2] : tensor<32xf32>
    %n = tensor.insert %v into %out[%t] : tensor<32xf32>
    %n2 = tensor.insert %v2 into %n[%t2] : tensor<32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %n2 into %out[0] [32] [1] : tensor<32xf32> into tensor<32xf32>
    }
  } {mapping = [#gpu.thread<x>]}
  return %1, %f : tensor<32x2xf32>, tensor<32xf32>
}
"""

LLVM = """llvm.func @sums(%p: !llvm.ptr {llvm.dereferenceable = 128 : i64},
                %q: !llvm.ptr {llvm.dereferenceable = 128 : i64})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
  %t = nvvm.read.ptx.sreg.tid.x range <i32, 0, 32> : i32
  %all = llvm.mlir.constant(-1 : i32) : i32
  %clamp = llvm.mlir.constant(31 : i32) : i32
  %far = llvm.mlir.constant(16 : i32) : i32
  %a = llvm.getelementptr %p[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  %v = llvm.load %a : !llvm.ptr -> f32
  nvvm.barrier
  %s = nvvm.shfl.sync bfly %all, %v, %far, %clamp : f32 -> f32
  %r = llvm.fadd %v, %s : f32
  %b = llvm.getelementptr %q[%t] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  llvm.store %r, %b : f32, !llvm.ptr
  llvm.return
}"""

GPU = """gpu.module @m {
  gpu.func @copy(%o: tensor<8xf32>, %x: tensor<8xf32>) kernel attributes {gpu.known_block_size = array<i32: 8, 1, 1>} {
    %t = gpu.thread_id x
    %v = tensor.extract %x[%t] : tensor<8xf32>
    %n = tensor.insert %v into %o[%t] : tensor<8xf32>
    gpu.return
  }
}"""

TWO_FAULTS = """func.func @main(%x: tensor<32xf32>, %o: tensor<32xf32>) -> tensor<32xf32> {
  %t = gpu.thread_id x {xla.range = [0 : index, 31 : index]}
  %one = arith.constant 1 : index
  %next = arith.addi %t, %one : index
  %tile = xla_gpu.allocate_shared : tensor<64xf32>
  %e = tensor.extract %x[%next] : tensor<32xf32>
  %w = tensor.insert %e into %tile[%t] : tensor<64xf32>
  %d = tensor.extract %w[%next] : tensor<64xf32>
  %r = tensor.insert %d into %o[%t] : tensor<32xf32>
  return %r : tensor<32xf32>
}"""
