// RUN: shardy-opt %s -mpmd-split-bwd-fragments -mpmd-fragment-dce | filecheck %s
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// The gradient of the input goes to the mesh before; that of the weight stays and can wait. A constant is made again.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[KEEP:.*]]:2 = mpmd.fragment<mesh="m1", origin=["f"(1)]> (%arg0) {call_counter = 0 : ui32, split_keep_transferred}
// CHECK-NEXT:      stablehlo.constant
// CHECK-NEXT:      %[[MULTIPLY:.*]] = stablehlo.multiply
// CHECK-NEXT:      %[[TANH:.*]] = stablehlo.tanh
// CHECK-NEXT:      mpmd.return %[[TANH]], %[[MULTIPLY]]
// CHECK:         %[[DROP:.*]] = mpmd.fragment<mesh="m1", origin=["f"(1)]> (%[[KEEP]]#1) {call_counter = 0 : ui32, split_drop_transferred}
// CHECK-NEXT:      stablehlo.constant
// CHECK-NEXT:      stablehlo.add
// CHECK:         %[[T:.*]] = mpmd.transfer %[[KEEP]]#0
// CHECK-NEXT:    return %[[T]], %[[DROP]]
func.func @main(%arg0: !mpmd.mesh_tensor<"m1", tensor<4xf32>>)
    -> (!mpmd.mesh_tensor<"m0", tensor<4xf32>>, !mpmd.mesh_tensor<"m1", tensor<4xf32>>)
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>} {
  %0:2 = mpmd.fragment<mesh="m1", origin=["f"(1)]> (%arg0) {call_counter = 0 : ui32} (%arg1: tensor<4xf32>) {
    %cst = stablehlo.constant dense<2.0> : tensor<4xf32>
    %2 = stablehlo.multiply %arg1, %cst : tensor<4xf32>
    %3 = stablehlo.add %2, %cst : tensor<4xf32>
    %4 = stablehlo.tanh %2 : tensor<4xf32>
    mpmd.return %4, %3 : tensor<4xf32>, tensor<4xf32>
  } : (!mpmd.mesh_tensor<"m1", tensor<4xf32>>)
      -> (!mpmd.mesh_tensor<"m1", tensor<4xf32>>, !mpmd.mesh_tensor<"m1", tensor<4xf32>>)
  %1 = mpmd.transfer %0#0 : (!mpmd.mesh_tensor<"m1", tensor<4xf32>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>>
  return %1, %0#1 : !mpmd.mesh_tensor<"m0", tensor<4xf32>>, !mpmd.mesh_tensor<"m1", tensor<4xf32>>
}
