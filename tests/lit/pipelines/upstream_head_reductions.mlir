// REFERENCE: no, jaxlib 0.10.2 does not read unreduced=min
// RUN: shardy-opt %s -sdy-export-pipeline='enable-insert-explicit-collectives=true upstream=head' | filecheck %s

// Inlined meshes are those of the text, also where some shardings are reduced by a minimum and others are not.

sdy.mesh @mesh = <["x"=2, "y"=2]>

// CHECK: func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2, "y"=2]>, [{}, {"y"}]>})
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: stablehlo.reduce{{.*}}[<mesh<["x"=2, "y"=2]>, [{}], unreduced=min{"y"}>]
  %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.minimum across dimensions = [1]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced=min{"y"}>]>}
    : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  // CHECK: sdy.reduce_scatter min [{"y"}] %0 out_sharding=<mesh<["x"=2, "y"=2]>, [{"y"}]> : tensor<8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}
