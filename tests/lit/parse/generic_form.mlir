// RUN: shardy-opt %s --mlir-print-op-generic | filecheck %s

// The generic form of ops, in which shardings are attributes like others.

sdy.mesh @mesh = <["a"=2]>

// CHECK: "sdy.mesh"() <{mesh = #sdy.mesh<["a"=2]>, sym_name = "mesh"}> : () -> ()
// CHECK: %[[CONSTRAINT:.*]] = "sdy.sharding_constraint"(%arg0) <{sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK: "func.return"(%[[CONSTRAINT]]) : (tensor<8x8xf32>) -> ()
func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"a"}, {?}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
