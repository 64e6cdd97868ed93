// RUN: shardy-opt %s -sdy-op-priority-propagate | filecheck %s
// RUN: shardy-opt %s -sdy-aggressive-propagate | filecheck %s

// Each level visits ops in program order again. An op of an earlier level that has nothing new to do is passed over
// until one of its tensors changes, and even then waits for its turn.

// The dots take part from the third level on, the add from the first one. The first dot shards the rows of %0 by "a",
// which concerns the add. But the second dot has its turn before that: %1 gets "b", and the add finds a conflict.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @op_of_an_earlier_level_waits(
// CHECK-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>},
// CHECK-SAME:    %arg1: tensor<16x8xf32>,
// CHECK-SAME:    %arg2: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>},
// CHECK-SAME:    %arg3: tensor<16x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", ?}, {?}]>]>}
// CHECK-NEXT:   %[[DOT_GENERAL_1:.*]] = stablehlo.dot_general %arg2, %arg3, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b", ?}, {?}]>]>}
// CHECK-NEXT:   %[[ADD:.*]] = stablehlo.add %[[DOT_GENERAL]], %[[DOT_GENERAL_1]] : tensor<8x8xf32>
// CHECK-NEXT:   return %[[ADD]] : tensor<8x8xf32>
func.func @op_of_an_earlier_level_waits(
    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<16x8xf32>, %arg2: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b", ?}, {?}]>}, %arg3: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.dot_general %arg2, %arg3, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
