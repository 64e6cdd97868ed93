// RUN: shardy-opt %s | filecheck %s

// The collectives of the sdy dialect.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @collectives(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[ALL_GATHER:.*]] = sdy.all_gather [{"a"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[ALL_SLICE:.*]] = sdy.all_slice [{}, {"a", "b"}] %[[ALL_GATHER]] out_sharding=<@mesh, [{}, {"a", "b"}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[COLLECTIVE_PERMUTE:.*]] = sdy.collective_permute %[[ALL_SLICE]] out_sharding=<@mesh, [{}, {"b", "a"}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[ALL_TO_ALL:.*]] = sdy.all_to_all [{"a"}: 1->0] %[[COLLECTIVE_PERMUTE]] out_sharding=<@mesh, [{"a"}, {"b"}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[ALL_GATHER_1:.*]] = sdy.all_gather [{"a"}, {"b"}] %[[ALL_TO_ALL]] out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[ALL_REDUCE:.*]] = sdy.all_reduce {"a", "b"} %[[ALL_GATHER_1]] out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[REDUCE_SCATTER:.*]] = sdy.reduce_scatter [{"a"}, {}] %[[ALL_REDUCE]] out_sharding=<@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[REDUCE_SCATTER]] : tensor<8x8xf32>
func.func @collectives(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_gather [{"a"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{}, {"a", "b"}] %0 out_sharding=<@mesh, [{}, {"a", "b"}]> : tensor<8x8xf32>
  %2 = sdy.collective_permute %1 out_sharding=<@mesh, [{}, {"b", "a"}]> : tensor<8x8xf32>
  %3 = sdy.all_to_all [{"a"}: 1->0] %2 out_sharding=<@mesh, [{"a"}, {"b"}]> : tensor<8x8xf32>
  %4 = sdy.all_gather [{"a"}, {"b"}] %3 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %5 = sdy.all_reduce {"a", "b"} %4 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %6 = sdy.reduce_scatter [{"a"}, {}] %5 out_sharding=<@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  return %6 : tensor<8x8xf32>
}
