// RUN: not shardy-opt %s -sdy-convert-global-to-local 2>&1 | filecheck %s
// REFERENCE: no, jaxlib runs the op on parts, whatever it computes

// An op without a rule has no local form, unless its operands are gathered.

sdy.mesh @mesh = <["a"=2]>

func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  // CHECK: unsupported_op.mlir:[[@LINE+1]]:8: error: 'stablehlo.custom_call' op
  %0 = stablehlo.custom_call @unknown(%arg0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
