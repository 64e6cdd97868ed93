// RUN: shardy-opt %s -mpmd-fragment-dedup -mpmd-fragment-dce -mpmd-remove-transfer-cycles -mpmd-move-transfers-to-producer | filecheck %s --check-prefix=CLEAN
// RUN: shardy-opt %s -mpmd-fragment-dce -mpmd-absorb-inferred-fragments='absorb-on-entry-point-function=true' | filecheck %s --check-prefix=MERGE
// RUN: shardy-opt %s -mpmd-fragment-dce -mpmd-merge-inferred-fragments='merge-any-consumer=true' -mpmd-merge-inferred-fragments='merge-sideways=true' | filecheck %s --check-prefix=MERGE
// RUN: shardy-opt %s -mpmd-fragment-dce -mpmd-merge-inferred-fragments -mpmd-merge-user-fragments-into-scheduling-units | filecheck %s --check-prefix=UNITS
// RUN: shardy-opt %s -mpmd-fragment-dce -mpmd-verify-stage-merging -mpmd-lower-to-fragment-calls | filecheck %s --check-prefix=CALLS
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// The second operand and the last result of the first fragment go, and the round trip over m1 as well. The inferred
// fragment merges with the one of f; those of f and g are one unit.

// CLEAN-LABEL: func.func @main
// CLEAN-NEXT:    mpmd.fragment<mesh="m0", origin=["f"]> (%arg0)
// CLEAN:         mpmd.fragment<mesh="m0", origin=["g"]>
// CLEAN-NOT:     mpmd.transfer

// MERGE-LABEL: func.func @main
// MERGE-NEXT:    mpmd.fragment<mesh="m0", origin=["f"]>
// MERGE-NEXT:      stablehlo.add
// MERGE-NEXT:      stablehlo.negate
// MERGE-NEXT:      mpmd.return

// UNITS:         mpmd.fragment<mesh="m0", origin=["f", "g"]>

// CALLS:         mpmd.fragment_call<mesh="m0", origin=["f"]> @p0_f.main(
// CALLS:         mpmd.fragment_call<mesh="m0", origin=["g"]> @p2_g.main(
// CALLS:       func.func @p0_f.main(%arg0: tensor<4xf32>) -> tensor<4xf32> attributes {mesh_shape = #sdy.mesh<["x"=2]>}
func.func @main(%arg0: !mpmd.mesh_tensor<"m0", tensor<4xf32>>)
    -> (!mpmd.mesh_tensor<"m0", tensor<4xf32>>, !mpmd.mesh_tensor<"m0", tensor<4xf32>>)
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>} {
  %0:2 = mpmd.fragment<mesh="m0", origin=["f"]> (%arg0, %arg0) (%arg1: tensor<4xf32>, %arg2: tensor<4xf32>) {
    %6 = stablehlo.add %arg1, %arg1 : tensor<4xf32>
    mpmd.return %6, %6 : tensor<4xf32>, tensor<4xf32>
  } : (!mpmd.mesh_tensor<"m0", tensor<4xf32>>, !mpmd.mesh_tensor<"m0", tensor<4xf32>>)
      -> (!mpmd.mesh_tensor<"m0", tensor<4xf32>>, !mpmd.mesh_tensor<"m0", tensor<4xf32>>)
  %1 = mpmd.transfer %0#0 : (!mpmd.mesh_tensor<"m0", tensor<4xf32>>) -> !mpmd.mesh_tensor<"m1", tensor<4xf32>>
  %2 = mpmd.transfer %1 : (!mpmd.mesh_tensor<"m1", tensor<4xf32>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>>
  %3 = mpmd.fragment<mesh="m0", origin=[]> (%0#0) (%arg1: tensor<4xf32>) {
    %6 = stablehlo.negate %arg1 : tensor<4xf32>
    mpmd.return %6 : tensor<4xf32>
  } : (!mpmd.mesh_tensor<"m0", tensor<4xf32>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>>
  %4 = mpmd.fragment<mesh="m0", origin=["g"]> (%0#0) (%arg1: tensor<4xf32>) {
    %6 = stablehlo.sine %arg1 : tensor<4xf32>
    mpmd.return %6 : tensor<4xf32>
  } : (!mpmd.mesh_tensor<"m0", tensor<4xf32>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>>
  return %3, %4 : !mpmd.mesh_tensor<"m0", tensor<4xf32>>, !mpmd.mesh_tensor<"m0", tensor<4xf32>>
}
