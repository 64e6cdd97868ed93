// RUN: shardy-opt %s -sdy-manual-axes-cleanup | filecheck %s

// Manual axes that a sharding of the computation does not use become replicated ones, and the list of manual axes is
// brought into the order of the mesh.

sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>,
// CHECK-SAME:    %arg1: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"b"}, {}], replicated={"a"}>, <@mesh, [{"b", "a"}, {"c", ?}]>] out_shardings=[<@mesh, [{}, {"b"}], replicated={"a", "c"}>] manual_axes={"a", "b"} (%arg2: tensor<4x8xf32>, %arg3: tensor<2x8xf32>) {
// CHECK-NEXT:     %[[TRANSPOSE:.*]] = stablehlo.transpose %arg2, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
// CHECK-NEXT:     sdy.return %[[TRANSPOSE]] : tensor<8x4xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   return %[[MANUAL_COMPUTATION]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"b"}, {}]>, <@mesh, [{"b", "a"}, {"c", ?}]>] out_shardings=[<@mesh, [{}, {"b"}], replicated={"c"}>] manual_axes={"b", "a"} (%arg2: tensor<4x8xf32>, %arg3: tensor<2x8xf32>) {
    %1 = stablehlo.transpose %arg2, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    sdy.return %1 : tensor<8x4xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
