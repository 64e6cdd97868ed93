// RUN: not shardy-opt %s -mpmd-validate-named-ops-in-mpmd-func='fail-on-misplaced-names=true' 2>&1 | filecheck %s
// RUN: shardy-opt %s -mpmd-validate-named-ops-in-mpmd-func='fail-on-misplaced-names=true of-public-functions=true' | filecheck %s --check-prefix=PUBLIC
// REFERENCE: no, jaxlib has this pass in its whole pipelines only

// A private function may still be inlined into one that has a topology.

// CHECK:         can only be nested in mpmd functions or mpmd ops
// PUBLIC-LABEL:  func.func private @part
// PUBLIC-NEXT:     mpmd.named_computation<"f">
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = func.call @part(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @part(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = mpmd.named_computation<"f"> (%arg0) (%arg1: tensor<8xf32>) {
    mpmd.return %arg1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
