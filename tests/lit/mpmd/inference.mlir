// RUN: shardy-opt %s -mpmd-infer-mesh-populate-use-set -mpmd-infer-mesh-populate-src-set | filecheck %s --check-prefix=SETS
// RUN: shardy-opt %s -mpmd-infer-mesh-populate-use-set -mpmd-infer-mesh-populate-src-set -mpmd-infer-mesh-convert-reduce-ops='infer-cross-mesh-reductions=true' | filecheck %s --check-prefix=REDUCE
// RUN: shardy-opt %s -mpmd-infer-mesh-populate-use-set -mpmd-infer-mesh-populate-src-set -mpmd-infer-mesh-assign-mesh-func-leaves='infer-transfers=true error-limit=1' -mpmd-infer-mesh-populate-use-set -mpmd-infer-mesh-rewrite-using-analysis='max-clones=2' -mpmd-infer-mesh-finalize='infer-transfers=true' | filecheck %s
// RUN: shardy-opt %s -mpmd-infer-mesh-pipeline='infer-transfers=true infer-cross-mesh-reductions=true error-limit=1 max-clones=1' | filecheck %s
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// The negation is used in m1, so it moves there, and the argument with it. The sum is of values of both meshes: each
// could be its mesh, and the first by name is taken.

// SETS-LABEL: func.func @main
// SETS-SAME:    %arg0: tensor<4xf32> {mpmd.src_set = #mpmd.meshes_with_origins<"m1"["inferred_in"]>, mpmd.use_set = #mpmd.meshes_with_origins<"m1"["g"]>}
// SETS:         stablehlo.negate {{.*}}mpmd.use_set = #mpmd.meshes_with_origins<"m1"["g"]>
// SETS:         stablehlo.add {{.*}} {mpmd.reduce = #mpmd.reduction<add>, mpmd.src_set = #mpmd.meshes_with_origins<"m0", "m1">}

// REDUCE:       mpmd.reduce<add>

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arg0: !mpmd.mesh_tensor<"m1", tensor<4xf32>>, %arg1: !mpmd.mesh_tensor<"m0", tensor<4xf32>>
// CHECK:         %[[G:.*]] = mpmd.fragment<mesh="m1", origin=["g"]> (%arg0)
// CHECK-NEXT:      stablehlo.negate
// CHECK-NEXT:      mpmd.return
// CHECK-NEXT:    }
// CHECK:         %[[T:.*]] = mpmd.transfer %[[G]]
// CHECK:         mpmd.fragment<mesh="m0", origin=[]> (%{{.*}}, %{{.*}})
// CHECK-NEXT:      stablehlo.add
func.func @main(%arg0: tensor<4xf32>, %arg1: !mpmd.mesh_tensor<"m0", tensor<4xf32>>) -> tensor<4xf32>
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>} {
  %0 = stablehlo.negate %arg0 : tensor<4xf32>
  %1 = mpmd.assign {origin = "g"} %0 : (tensor<4xf32>) -> !mpmd.mesh_tensor<"m1", tensor<4xf32>>
  %2 = mpmd.fragment<mesh="m1", origin=["g"]> (%1) (%arg2: tensor<4xf32>) {
    mpmd.return %arg2 : tensor<4xf32>
  } : (!mpmd.mesh_tensor<"m1", tensor<4xf32>>) -> !mpmd.mesh_tensor<"m1", tensor<4xf32>>
  %3 = mpmd.unassign %2 : (!mpmd.mesh_tensor<"m1", tensor<4xf32>>) -> tensor<4xf32>
  %4 = mpmd.unassign %arg1 : (!mpmd.mesh_tensor<"m0", tensor<4xf32>>) -> tensor<4xf32>
  %5 = stablehlo.add %4, %3 : tensor<4xf32>
  return %5 : tensor<4xf32>
}
