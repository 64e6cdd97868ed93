// RUN: shardy explain %s --value %1 | filecheck %s
// RUN: shardy explain %s --value arg1 --dim 0 | filecheck %s --check-prefix=DIM
// RUN: shardy explain %s --reshards | filecheck %s --check-prefix=RESHARDS

// Why a tensor is sharded as it is.

// CHECK: %1: tensor<8x8xf32>
// CHECK: sharding: <@mesh, [{"a", ?}, {?}]>
// CHECK: dimension 0 of size 8: {"a", ?}
// CHECK: "a" comes from function argument %arg0, dimension 0
// CHECK-NEXT: %1 dim 0 <- %0 dim 0 "a": forward through stablehlo.tanh
// CHECK-NEXT: %0 dim 0 <- %arg0 dim 0 "a": forward through stablehlo.add
// CHECK-NEXT: %arg0 dim 0: annotated <@mesh, [{"a", ?}, {?}]>
// CHECK: dimension 1 of size 8: {?}
// DIM: %arg1: tensor<8x8xf32>
// DIM: %arg1 dim 0 <- %arg0 dim 0 "a": sideways through stablehlo.add
// DIM-NOT: dimension 1
// RESHARDS: no reshards
sdy.mesh @mesh = <["a"=2]>

func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
