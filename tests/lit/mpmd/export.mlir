// RUN: shardy-opt %s -mpmd-export-pipeline | filecheck %s
// RUN: shardy-opt %s -mpmd-export-pipeline='copy-constant-creation-from-producer-to-consumer=true fail-on-reshard-only-fragments=true fail-on-backward-deps=true fail-on-inferred-fragments=false fail-on-param-transfers=true param-transfer-pattern=weights verbose-logging=true' 2>&1 | filecheck %s --check-prefixes=LOG,CHECK
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// The user gave %arg0 away, so its buffer becomes the result of the first fragment; what that makes becomes the second
// result. %arg1 stays on its mesh, 256 bytes, while the second fragment runs. A value that is returned twice is copied.

// LOG:         will execute
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[F:.*]] = mpmd.fragment_call<mesh="m0", origin=["f"]> @p0_f.main(%arg0, %arg1)
// CHECK-NEXT:    %[[G:.*]]:2 = mpmd.fragment_call<mesh="m0", origin=["g"]> @p1_g.main(%[[F]])
// CHECK-NEXT:    return %[[G]]#0, %[[G]]#1
// CHECK:       func.func @p0_f.main(%arg0: tensor<8x8xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<8x8xf32>)
// CHECK-SAME:    mesh_shape = #sdy.mesh<["x"=2]>, reserved_hbm_bytes = 0 : i64
// CHECK:       func.func @p1_g.main(%arg0: tensor<8x8xf32> {tf.aliasing_output = 0 : i32})
// CHECK-SAME:    reserved_hbm_bytes = 256 : i64
!t = !mpmd.mesh_tensor<"m0", tensor<8x8xf32>>
func.func @main(%arg0: !t {jax.buffer_donor = true}, %arg1: !t) -> (!t, !t)
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>>} {
  %0 = mpmd.fragment<mesh="m0", origin=["f"]> (%arg0, %arg1) (%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
    %2 = stablehlo.add %a, %b : tensor<8x8xf32>
    mpmd.return %2 : tensor<8x8xf32>
  } : (!t, !t) -> !t
  %1 = mpmd.fragment<mesh="m0", origin=["g"]> (%0) (%a: tensor<8x8xf32>) {
    %2 = stablehlo.tanh %a : tensor<8x8xf32>
    mpmd.return %2 : tensor<8x8xf32>
  } : (!t) -> !t
  return %1, %1 : !t, !t
}
