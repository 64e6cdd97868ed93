// RUN: shardy-opt %s -mpmd-import-pipeline='enable-heterogeneous-meshes=true constraints=0:0 verify-schedule-units=true infer-transfers=true name-to-mesh-assignment=f@gpu' | filecheck %s
// RUN: shardy-opt %s -mpmd-validate-named-ops-in-mpmd-func='fail-on-misplaced-names=true' -mpmd-generate-sdy-meshes-from-topology -mpmd-map-named-ops-to-mpmd-ops='assignment=f@gpu' -mpmd-introduce-transfers -mpmd-infer-mesh-pipeline='constraints=0:0 infer-transfers=true' -mpmd-enforce-input-output-equisharding='constraints=0:0' | filecheck %s
// RUN: shardy-opt %s -mpmd-infer-mesh-assign-using-input-output-constraints='constraints=0:0' -canonicalize | filecheck %s --check-prefix=NONE
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// The axis gpu_x is one of the mesh gpu. The result is on the mesh of the argument, though nothing else says so.

// CHECK-DAG:     sdy.mesh @gpu = <["gpu_x"=2]>
// CHECK-DAG:     sdy.mesh @cpu = <["cpu_y"=4]>
// CHECK:         func.func @main(%arg0: !mpmd.mesh_tensor<"gpu", tensor<8xf32>> {sdy.sharding = #sdy.sharding<@gpu, [{"gpu_x"}]>}
// CHECK-SAME:      -> !mpmd.mesh_tensor<"gpu", tensor<8xf32>>

// NONE:          func.func @main(%arg0: tensor<8xf32>
sdy.mesh @mesh = <["gpu_x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"gpu_x"}]>}) -> tensor<8xf32>
    attributes {topology = #mpmd.topology<<"gpu" : <["gpu_x"=2]>>, <"cpu" : <["cpu_y"=4]>>>} {
  %0 = mpmd.named_computation<"f"> (%arg0) (%a: tensor<8xf32>) {
    %2 = stablehlo.tanh %a : tensor<8xf32>
    mpmd.return %2 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
