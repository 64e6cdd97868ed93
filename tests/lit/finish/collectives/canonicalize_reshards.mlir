// RUN: shardy-opt %s -sdy-canonicalize-reshards | filecheck %s

// Of reshards in a chain the last one stays, unless the one before has another use.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{}, {"b"}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[RESHARD_1:.*]] = sdy.reshard %arg0 <@mesh, [{"b"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[RESHARD_2:.*]] = sdy.reshard %[[RESHARD_1]] <@mesh, [{"b"}, {"a"}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[RESHARD]], %[[RESHARD_1]], %[[RESHARD_2]] : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.reshard %arg0 <@mesh, [{}, {"a"}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {"b"}]> : tensor<8x8xf32>
  %2 = sdy.reshard %arg0 <@mesh, [{"b"}, {}]> : tensor<8x8xf32>
  %3 = sdy.reshard %2 <@mesh, [{"b"}, {"a"}]> : tensor<8x8xf32>
  return %1, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
