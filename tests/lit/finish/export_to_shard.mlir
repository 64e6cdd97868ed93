// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -sdy-close-shardings -shardy-export-to-shard | filecheck %s

// Values have their shardings in MLIR's own dialect, in which axes are numbers.

// CHECK: "shard.grid"() {shape = array<i64: 2, 4>, sym_name = "mesh"}
// CHECK-NOT: sdy.
sdy.mesh @mesh = <["x"=2, "y"=4]>

// CHECK-LABEL: func @main(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32>
// CHECK-NEXT: %[[FIRST:.*]] = "shard.sharding"() {grid = @mesh, {{.*}}split_axes = #shard<axisarray{{\[\[}}0], []]>
// CHECK-NEXT: %[[ARG:.*]] = "shard.shard"(%arg0, %[[FIRST]])
// CHECK-NEXT: %[[ADD:.*]] = stablehlo.add %[[ARG]], %[[ARG]] : tensor<8x16xf32>
// CHECK-NEXT: %[[SECOND:.*]] = "shard.sharding"() {{.*}}#shard<axisarray{{\[\[}}0], [1]]>
// CHECK-NEXT: %[[MOVED:.*]] = "shard.shard"(%[[ADD]], %[[SECOND]])
// CHECK-NEXT: return %[[MOVED]]
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x16xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<8x16xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {"y"}]> : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
