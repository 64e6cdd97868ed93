// RUN: shardy-opt %s -mpmd-import-pipeline='infer-transfers=true infer-cross-mesh-reductions=true merge-after-scheduling=true split-bwd-fragments=true input-assignment=1@m0 output-assignment=0@m1 name-to-mesh-assignment=f@m0,g@m1' -mpmd-optimize-pipeline='pipeline-schedule=GPipe merge-after-scheduling=true' -mpmd-sharding-propagation-pipeline | filecheck %s
// RUN: shardy-opt %s -mpmd-import-pipeline='name-to-mesh-assignment=f@m0,g@m1 infer-transfers=true' -mpmd-pipeline-scheduler='must-happen-before=1F1B' | filecheck %s --check-prefix=ORDER
// RUN: shardy-opt %s -mpmd-unroll-for-loops -mpmd-from-unroll-to-call-counter -mpmd-sink-negligible-ops-into-call-op -mpmd-erase-unused-callee-block-arguments | filecheck %s --check-prefix=UNROLL
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// Two microbatches in a loop. The sharding of the input goes through the fragments and the transfer.

// CHECK-LABEL: func.func @main
// CHECK-SAME:    %arg0: !mpmd.mesh_tensor<"m0", tensor<4x8xf32>, sharding=<@mesh, [{"x"}, {}]>>
// CHECK:         mpmd.fragment<mesh="m0", origin=["f"]>
// CHECK:         mpmd.transfer {{.*}} -> !mpmd.mesh_tensor<"m1", tensor<4x8xf32>, sharding=<@mesh, [{"x"}, {}]>>
// CHECK:         mpmd.fragment<mesh="m1", origin=["g"]>

// ORDER:         origin=["f"]> {{.*}} {call_counter = 0 : ui32}
// ORDER:         origin=["f"]> {{.*}} {call_counter = 1 : ui32}

// UNROLL:        mpmd.call @step(%arg0, {{.*}}) {call_counter = 0 : ui32}
// UNROLL:        mpmd.call @step({{.*}}) {call_counter = 1 : ui32}
// UNROLL-LABEL:  func.func private @step(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32>) ->
sdy.mesh @mesh = <["x"=2]>

func.func @main(%arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<4x8xf32>)
    -> tensor<4x8xf32> attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>} {
  %0:2 = mpmd.for (%arg0, %arg1) {iterations = 2 : ui32, unroll_factor = 2 : ui32} (%arg2: tensor<4x8xf32>, %arg3: tensor<4x8xf32>, %arg4: tensor<ui32>) {
    %cst = stablehlo.constant dense<1.0> : tensor<4x8xf32>
    %1:2 = mpmd.call @step(%arg2, %arg3, %cst) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    mpmd.return %1#1, %1#0 : tensor<4x8xf32>, tensor<4x8xf32>
  } : tensor<4x8xf32>, tensor<4x8xf32>
  return %0#1 : tensor<4x8xf32>
}

func.func private @step(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>)
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>} {
  %0 = mpmd.named_computation<"f"> (%arg0) (%arg3: tensor<4x8xf32>) {
    %2 = stablehlo.tanh %arg3 : tensor<4x8xf32>
    mpmd.return %2 : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mpmd.named_computation<"g"> (%0, %arg1) (%arg3: tensor<4x8xf32>, %arg4: tensor<4x8xf32>) {
    %2 = stablehlo.add %arg3, %arg4 : tensor<4x8xf32>
    mpmd.return %2 : tensor<4x8xf32>
  } : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1, %arg0 : tensor<4x8xf32>, tensor<4x8xf32>
}
