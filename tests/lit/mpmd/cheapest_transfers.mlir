// Transfers where the fewest bytes move: the narrow result of a cast instead of its wide operand.

// RUN: shardy-opt %s -mpmd-import-pipeline='cheapest-transfers=true name-to-mesh-assignment=first@m0,second@m1 infer-transfers=true' | filecheck %s
// RUN: shardy-opt %s -mpmd-import-pipeline='name-to-mesh-assignment=first@m0,second@m1 infer-transfers=true' | filecheck %s --check-prefix=EARLY
// RUN: shardy-opt %s -mpmd-map-named-ops-to-mpmd-ops='assignment=first@m0,second@m1' -mpmd-introduce-transfers -mpmd-infer-mesh-pipeline='infer-transfers=true cheapest-transfers=true' | filecheck %s --check-prefix=PIPELINE
// RUN: shardy-opt %s -mpmd-map-named-ops-to-mpmd-ops='assignment=first@m0,second@m1' -mpmd-introduce-transfers -mpmd-infer-mesh-populate-use-set -mpmd-infer-mesh-populate-src-set -mpmd-infer-mesh-convert-reduce-ops='infer-cross-mesh-reductions=true reduces-arguments=false' -mpmd-infer-mesh-assign-mesh-func-leaves='infer-transfers=true' -mpmd-infer-mesh-populate-use-set -mpmd-infer-mesh-cheapest-transfers | filecheck %s --check-prefix=PASS
// REFERENCE: no, it has no such pass or option

// PIPELINE: mpmd.transfer {{.*}}"m0", tensor<4x8xbf16>

// PASS: %[[PRODUCT:.*]] = stablehlo.multiply
// PASS-NEXT: %[[CAST:.*]] = stablehlo.convert %[[PRODUCT]]
// PASS-NEXT: %[[HERE:.*]] = mpmd.assign %[[CAST]] : {{.*}}"m0", tensor<4x8xbf16>
// PASS-NEXT: %[[MOVES:.*]] = mpmd.unassign %[[HERE]]
// PASS-NEXT: mpmd.assign {{.*}} %[[MOVES]] : {{.*}}"m1", tensor<4x8xbf16>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg1: !mpmd.mesh_tensor<"m0", tensor<4x8xf32>>
// EARLY-LABEL: func.func @main
// EARLY-SAME: %arg1: !mpmd.mesh_tensor<"m1", tensor<4x8xf32>>
func.func @main(%x: tensor<4x8xf32>, %scale: tensor<4x8xf32>) -> tensor<4x8xbf16>
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>} {
  // CHECK: mpmd.fragment<mesh="m0", origin=["first"]>
  // CHECK: stablehlo.multiply
  // CHECK: stablehlo.convert
  // CHECK: mpmd.transfer {{.*}}"m0", tensor<4x8xbf16>
  // EARLY: mpmd.transfer {{.*}}"m0", tensor<4x8xf32>
  // EARLY: mpmd.fragment<mesh="m1", origin=["second"]>
  // EARLY: stablehlo.convert
  %0 = mpmd.named_computation<"first"> (%x) (%a: tensor<4x8xf32>) {
    %r = stablehlo.tanh %a : tensor<4x8xf32>
    mpmd.return %r : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // A product with an argument is no reduction over meshes: the argument goes where the product is.
  %1 = stablehlo.multiply %0, %scale : tensor<4x8xf32>
  %2 = stablehlo.convert %1 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  %3 = mpmd.named_computation<"second"> (%2) (%a: tensor<4x8xbf16>) {
    %r = stablehlo.sine %a : tensor<4x8xbf16>
    mpmd.return %r : tensor<4x8xbf16>
  } : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  return %3 : tensor<4x8xbf16>
}
