// RUN: shardy-opt %s -mpmd-mark-offloaded-input-output -mpmd-mark-input-output-with-layouts -mpmd-delay-inferred-fragments -mpmd-delay-transfers-from-cpu -mpmd-sink-create-token-into-fragments -mpmd-mark-aliasing-and-donation -mpmd-mark-fragment-reserved-memory | filecheck %s
// RUN: shardy-opt %s -mpmd-validate-no-param-transfers='fail-on-param-transfers=true param-transfer-pattern=weights' -mpmd-validate-no-inferred-fragments='fail-on-inferred-fragments=true' -mpmd-lower-to-fragment-calls='verbose-logging=true' -mpmd-validate-no-reshards='fail-on-reshard-only-fragments=true' -mpmd-validate-no-backward-deps='fail-on-backward-deps=true' | filecheck %s --check-prefix=CALLS
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// The tensor from the host arrives when it is used, and is free afterwards. The layout of the argument is that of the
// fragment's argument.

// CHECK:         mpmd.fragment<mesh="m0", origin=["f"]> (%arg0)
// CHECK-SAME:      arg_attrs = [{mhlo.layout_mode = "{1,0}"}]
// CHECK:         %[[T:.*]] = mpmd.transfer %arg1
// CHECK-NEXT:    mpmd.fragment<mesh="m0", origin=["g"]> (%[[T]])
// CHECK-SAME:      tf.aliasing_output = 0 : i32

// CALLS:         mpmd.fragment_call<mesh="m0", origin=["f"]> @p0_f.main(%arg0)
// CALLS:         mpmd.fragment_call<mesh="m0", origin=["g"]> @p1_g.main
!t = !mpmd.mesh_tensor<"m0", tensor<8x8xf32>>
!h = !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, memory_kind="pinned_host">
func.func @main(%arg0: !t {mhlo.layout_mode = "{1,0}"}, %arg1: !h) -> (!t, !t)
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>>} {
  %0 = mpmd.transfer %arg1 : (!h) -> !t
  %1 = mpmd.fragment<mesh="m0", origin=["f"]> (%arg0) (%a: tensor<8x8xf32>) {
    %3 = stablehlo.tanh %a : tensor<8x8xf32>
    mpmd.return %3 : tensor<8x8xf32>
  } : (!t) -> !t
  %2 = mpmd.fragment<mesh="m0", origin=["g"]> (%0) (%a: tensor<8x8xf32>) {
    %3 = stablehlo.sine %a : tensor<8x8xf32>
    mpmd.return %3 : tensor<8x8xf32>
  } : (!t) -> !t
  return %1, %2 : !t, !t
}
