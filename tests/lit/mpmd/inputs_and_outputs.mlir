// RUN: shardy-opt %s -mpmd-map-input-output-to-mesh='input-assignment=0@m1 output-assignment=0@m0' | filecheck %s
// RUN: shardy-opt %s -mpmd-infer-mesh-populate-use-set -mpmd-infer-mesh-validate-src-set-not-empty='error-limit=1' -mpmd-infer-mesh-assign-mesh-func-leaves -mpmd-infer-mesh-populate-use-set -mpmd-infer-mesh-validate-no-additional-transfers-needed='error-limit=-1' | filecheck %s --check-prefix=LEAF
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// An argument that the user put on a mesh is taken off it, and a result is put on one.

// LEAF:          mpmd.assign {mpmd.use_set = #mpmd.meshes_with_origins<"m0"["inferred_out"]>, origin = "inferred_out"} %arg0

// CHECK-LABEL: func.func @main(%arg0: !mpmd.mesh_tensor<"m1", tensor<4xf32>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>>
// CHECK-NEXT:    %[[IN:.*]] = mpmd.unassign {origin = "user_in"} %arg0
// CHECK-NEXT:    %[[OUT:.*]] = mpmd.assign {origin = "user_out"} %[[IN]]
// CHECK-NEXT:    return %[[OUT]]
func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32>
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>} {
  return %arg0 : tensor<4xf32>
}
