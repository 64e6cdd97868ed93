// RUN: shardy-opt %s -mpmd-calls-to-named-ops='names=third' -mpmd-copy-topology-from-main | filecheck %s --check-prefix=NAMES
// RUN: shardy-opt %s -mpmd-calls-to-named-ops='names=third' -mpmd-copy-topology-from-main -mpmd-insert-nameless-clone-of-negligible-ops -mpmd-simplify-named-computations -mpmd-validate-named-ops-in-mpmd-func -mpmd-inline-nested-user-exposed-ops='assignment=first@m0,second@m1,third@m1' -mpmd-map-named-ops-to-mpmd-ops='assignment=first@m0/0,second@m1/1,third@m1/1' -mpmd-introduce-transfers -mpmd-call-inline | filecheck %s
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// Functions whose names have a mark are named computations and microbatches; others are where the option has them. Named
// computations become fragments, and a value that goes from one to another becomes a transfer.

// NAMES-LABEL: func.func public @main
// NAMES-NEXT:    mpmd.call @"mpmd|call||3|"(%arg0) {call_counter = 3 : ui32}
// NAMES-LABEL: func.func private @"mpmd|call||3|"
// NAMES:         mpmd.named_computation<"first"> (%arg0)
// NAMES:         mpmd.named_tensor
// NAMES:         mpmd.named_computation<"second"(1)>
// NAMES:         mpmd.named_computation<"third">

// CHECK-LABEL: func.func public @main
// CHECK-NEXT:    %[[ASSIGN:.*]] = mpmd.assign {origin = "first"} %arg0
// CHECK-NEXT:    %[[F:.*]] = mpmd.fragment<mesh="m0", origin=["first"], stage=0> (%[[ASSIGN]]) {call_counter = 3 : ui32}
// CHECK-NEXT:      stablehlo.tanh
// CHECK-NEXT:      mpmd.return
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[T:.*]] = mpmd.transfer %[[F]]
// CHECK-NEXT:    %[[G:.*]] = mpmd.fragment<mesh="m1", origin=["second"(1)], stage=1> (%[[T]]) {call_counter = 3 : ui32}
func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32>
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>} {
  %0 = call @"mpmd|call||3|"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @"mpmd|call||3|"(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @"mpmd|computation|first|0|"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @"mpmd|tensor|unassigned|0|"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = call @"mpmd|computation|second|1|_0"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = call @third(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

func.func private @"mpmd|computation|first|0|"(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @"mpmd|tensor|unassigned|0|"(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.optimization_barrier %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @"mpmd|computation|second|1|_0"(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func private @third(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.cosine %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
