// RUN: shardy-opt %s -mpmd-scheduling-units-verifier -mpmd-split-and-prioritize-transfer-independent-computations -mpmd-copy-constants -mpmd-fold-splats='identities=true' -cse -mpmd-simplify-transfers -mpmd-fragment-dce -mpmd-merge-forward-with-backward -mpmd-uniquify-function-inputs-outputs='use-transfer-instead-of-fragment=true' 2>&1 | filecheck %s
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// Half of the second fragment need not wait for the transfer. The zeros of the first one are made where they are added,
// and the sum folds. A result that is returned twice is copied.

// CHECK:         warning: 'func.func' op Number of backward scheduling units in mesh m0
// CHECK:         %[[T:.*]] = mpmd.transfer %arg1
// CHECK:         %[[KEEP:.*]] = mpmd.fragment<mesh="m0", origin=["g"]> (%arg0) {call_counter = 0 : ui32, split_keep_transferred}
// CHECK-NEXT:      %[[TANH:.*]] = stablehlo.tanh
// CHECK-NEXT:      mpmd.return %[[TANH]]
// CHECK:         %[[DROP:.*]] = mpmd.fragment<mesh="m0", origin=["g"]>
// CHECK-SAME:      split_drop_transferred
// CHECK-NEXT:      stablehlo.multiply
// CHECK-NOT:       stablehlo.add
// CHECK:         %[[COPY:.*]] = mpmd.transfer %[[DROP]]
// CHECK-NEXT:    return %[[DROP]], %[[COPY]]
!t = !mpmd.mesh_tensor<"m0", tensor<8xf32>>
!u = !mpmd.mesh_tensor<"m1", tensor<8xf32>>
func.func @main(%arg0: !t, %arg1: !u) -> (!t, !t)
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>} {
  %0 = mpmd.fragment<mesh="m0", origin=["f"]> () {call_counter = 0 : ui32} () {
    %4 = stablehlo.constant dense<0.0> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<8xf32>
    mpmd.return %5 : tensor<8xf32>
  } : () -> !t
  %1 = mpmd.transfer %arg1 : (!u) -> !t
  %2 = mpmd.transfer %arg0 : (!t) -> !t
  %3 = mpmd.fragment<mesh="m0", origin=["g"]> (%2, %0, %1) {call_counter = 0 : ui32} (%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) {
    %4 = stablehlo.tanh %a : tensor<8xf32>
    %5 = stablehlo.multiply %4, %c : tensor<8xf32>
    %6 = stablehlo.constant dense<0.0> : tensor<8xf32>
    %7 = stablehlo.add %5, %6 : tensor<8xf32>
    mpmd.return %7 : tensor<8xf32>
  } : (!t, !t, !t) -> !t
  return %3, %3 : !t, !t
}
