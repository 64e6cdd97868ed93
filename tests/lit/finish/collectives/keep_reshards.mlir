// REFERENCE: no, the passes keep-reshards, split-partitioner-reshards and reshard-block-arguments are our own
// RUN: shardy-opt %s -keep-reshards | filecheck %s
// RUN: shardy-opt %s -split-partitioner-reshards | filecheck %s --check-prefix=SPLIT
// RUN: shardy-opt %s -reshard-block-arguments | filecheck %s --check-prefix=BLOCK

// For estimates of what XLA does, chains of reshards stay while dead ops go; a reshard that XLA carries out by a gather
// and a slice gets one before it.

sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"a"}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[RESHARD_1:.*]] = sdy.reshard %[[RESHARD]] <@mesh, [{"b", "c"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[RESHARD_1]] : tensor<8x8xf32>
// SPLIT-LABEL: func.func @main(
// SPLIT-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// SPLIT-SAME:    -> tensor<8x8xf32> {
// SPLIT-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"a"}]> : tensor<8x8xf32>
// SPLIT-NEXT:   %[[RESHARD_1:.*]] = sdy.reshard %[[RESHARD]] <@mesh, [{}, {}]> : tensor<8x8xf32>
// SPLIT-NEXT:   %[[RESHARD_2:.*]] = sdy.reshard %[[RESHARD_1]] <@mesh, [{"b", "c"}, {}]> : tensor<8x8xf32>
// SPLIT-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 : tensor<8x8xf32>
// SPLIT-NEXT:   return %[[RESHARD_2]] : tensor<8x8xf32>
// BLOCK-LABEL: func.func @main(
// BLOCK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// BLOCK-SAME:    -> tensor<8x8xf32> {
// BLOCK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"a"}]> : tensor<8x8xf32>
// BLOCK-NEXT:   %[[RESHARD_1:.*]] = sdy.reshard %[[RESHARD]] <@mesh, [{"b", "c"}, {}]> : tensor<8x8xf32>
// BLOCK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 : tensor<8x8xf32>
// BLOCK-NEXT:   return %[[RESHARD_1]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{}, {"a"}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"b", "c"}, {}]> : tensor<8x8xf32>
  %2 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
