// RUN: shardy-opt %s -mpmd-sharding-propagation-pipeline | filecheck %s
// RUN: shardy-opt %s -mpmd-populate-unreduced-out-sharding -mpmd-enforce-user-shardings -mpmd-extract-reshards-from-inter-mesh-transfers -mpmd-convert-sdy-shardings-to-mpmd-types -mpmd-simplify-program | filecheck %s
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// A transfer does not reshard. The tensor is smaller on each device behind the first one, so the producer cuts it; it is
// smaller before the second one, so a fragment behind it puts it together.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[F:.*]] = mpmd.fragment<mesh="m0", origin=["f"]>
// CHECK:         -> !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@mesh, [{"x"}, {}]>>
// CHECK-NEXT:    %[[T:.*]] = mpmd.transfer %[[F]]
// CHECK-SAME:      -> !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@mesh, [{"x"}, {}]>>
// CHECK-NEXT:    %[[U:.*]] = mpmd.transfer %arg1
// CHECK-SAME:      -> !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@mesh, [{"x"}, {}]>>
// CHECK-NEXT:    %[[R:.*]] = mpmd.fragment<mesh="m1", origin=[]> (%[[U]]) {mpmd.inferred_by = ["extract_reshards"]}
// CHECK:         return %[[T]], %[[R]] : {{.*}}sharding=<@mesh, [{"x"}, {}]>>, {{.*}}sharding=<@mesh, [{}, {}]>>
sdy.mesh @mesh = <["x"=2]>
!m0 = !mpmd.mesh_tensor<"m0", tensor<8x8xf32>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<8x8xf32>>
func.func @main(%arg0: !m0 {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
                %arg1: !m0 {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (!m1 {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, !m1 {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>, <"m1" : <["x"=2]>>>} {
  %0 = mpmd.fragment<mesh="m0", origin=["f"], out_shardings=[<@mesh, [{}, {}]>]> (%arg0) (%a: tensor<8x8xf32>) {
    %3 = stablehlo.tanh %a : tensor<8x8xf32>
    mpmd.return %3 : tensor<8x8xf32>
  } : (!m0) -> !m0
  %1 = mpmd.transfer %0 : (!m0) -> !m1
  %2 = mpmd.transfer %arg1 : (!m0) -> !m1
  return %1, %2 : !m1, !m1
}
