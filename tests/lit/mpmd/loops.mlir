// RUN: shardy-opt %s -mpmd-infer-mesh-rewrite-using-analysis | filecheck %s
// REFERENCE: no, jaxlib has this pass in its whole pipelines only

// What the loop carries is on the meshes of its use sets, within and behind the loop, and so is the index, which is
// used; the ops in it are in fragments.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    -> (!mpmd.mesh_tensor<"m0", tensor<ui32>>, !mpmd.mesh_tensor<"m1", tensor<ui32>>)
// CHECK-NEXT:    %[[A:.*]] = mpmd.assign %arg0 : (tensor<ui32>) -> !mpmd.mesh_tensor<"m0", tensor<ui32>>
// CHECK-NEXT:    %[[B:.*]] = mpmd.assign %arg0 : (tensor<ui32>) -> !mpmd.mesh_tensor<"m1", tensor<ui32>>
// CHECK-NEXT:    %[[FOR:.*]]:2 = mpmd.for (%[[A]], %[[B]]) {iterations = 3 : ui32, unroll_factor = 1 : ui32}
// CHECK-SAME:      (%arg1: !mpmd.mesh_tensor<"m0", tensor<ui32>>, %arg2: !mpmd.mesh_tensor<"m1", tensor<ui32>>, %index: !mpmd.mesh_tensor<"m1", tensor<ui32>>)
// CHECK:           %[[SUM:.*]] = mpmd.fragment<mesh="m1", origin=[]>
// CHECK-NEXT:        stablehlo.add
// CHECK:           %[[OFF:.*]] = mpmd.unassign %[[SUM]]
// CHECK:           %[[SAME:.*]] = mpmd.assign %{{.*}} -> !mpmd.mesh_tensor<"m0", tensor<ui32>>
// CHECK-NEXT:      %[[NEXT:.*]] = mpmd.assign %[[OFF]] : (tensor<ui32>) -> !mpmd.mesh_tensor<"m1", tensor<ui32>>
// CHECK-NEXT:      mpmd.return %[[SAME]], %[[NEXT]]
// CHECK:         return %[[FOR]]#0, %[[FOR]]#1
func.func @main(%arg0: tensor<ui32>) -> (tensor<ui32>, tensor<ui32>)
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>} {
  %0:2 = mpmd.for (%arg0, %arg0) {
      arg_attrs = [{}, {mpmd.use_set = #mpmd.meshes_with_origins<"m1">}, {mpmd.use_set = #mpmd.meshes_with_origins<"m1">}],
      iterations = 3 : ui32, unroll_factor = 1 : ui32}
      (%arg1: tensor<ui32>, %arg2: tensor<ui32>, %index: tensor<ui32>) {
    %1 = stablehlo.add %arg2, %index : tensor<ui32>
    mpmd.return %arg1, %1 : tensor<ui32>, tensor<ui32>
  } : tensor<ui32>, tensor<ui32>
  return %0#0, %0#1 : tensor<ui32>, tensor<ui32>
}
