// REFERENCE: no, jaxlib 0.10.2 does not read the words of reductions
// RUN: shardy-opt %s -sdy-lift-inlined-meshes | filecheck %s
// RUN: shardy-opt %s -canonicalize | filecheck %s --check-prefix=CANONICAL
// RUN: shardy-opt %s -sdy-canonicalize-collectives | filecheck %s --check-prefix=CANONICAL

// Meshes and collectives that passes add keep the reductions of upstream's newer text.

// CHECK: sdy.mesh @mesh_0 = <["x"=2, "y"=2]>
sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func @inlined
// CHECK-NEXT: stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh_0, [{"x"}], unreduced=max{"y"}>]>}
func.func @inlined(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<mesh<["x"=2, "y"=2]>, [{"x"}], unreduced=max{"y"}>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CANONICAL-LABEL: func @fused
// CANONICAL-NEXT: sdy.reduce_scatter max [{"x"}] %arg0 out_sharding=<@mesh, [{"y", "x"}]>
func.func @fused(%arg0 : tensor<16xf32> {sdy.sharding=#sdy.sharding<@mesh, [{"y"}], unreduced=max{"x"}>}) -> tensor<16xf32> {
  %0 = sdy.all_reduce max {"x"} %arg0 out_sharding=<@mesh, [{"y"}], replicated={"x"}> : tensor<16xf32>
  %1 = sdy.all_slice [{"x"}] %0 out_sharding=<@mesh, [{"y", "x"}]> : tensor<16xf32>
  return %1 : tensor<16xf32>
}
