// RUN: shardy-opt %s -split-input-file -sdy-insert-explicit-reshards='enable-full-version=true' | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-insert-explicit-reshards | filecheck %s --check-prefix=PART

// What flows into a loop, and what its body yields, is resharded to the sharding of its result; a returned value to
// that of the function's result. The version that is not full leaves both to the partitioner.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @loop(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>},
// CHECK-SAME:    %arg1: tensor<i1>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %[[RESHARD]], %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>, <@mesh, []>]>}
// CHECK-NEXT:   cond {
// CHECK-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:     %[[RESHARD_1:.*]] = sdy.reshard %[[TANH]] <@mesh, [{}, {"a"}]> : tensor<8x8xf32>
// CHECK-NEXT:     %[[RESHARD_2:.*]] = sdy.reshard %[[RESHARD_1]] <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:     stablehlo.return %[[RESHARD_2]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   }
// CHECK-NEXT:   return %[[WHILE]]#0 : tensor<8x8xf32>
// PART-LABEL: func.func @loop(
// PART-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>},
// PART-SAME:    %arg1: tensor<i1>)
// PART-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// PART-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>, <@mesh, []>]>}
// PART-NEXT:   cond {
// PART-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// PART-NEXT:   } do {
// PART-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>}
// PART-NEXT:     stablehlo.return %[[TANH]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// PART-NEXT:   }
// PART-NEXT:   return %[[WHILE]]#0 : tensor<8x8xf32>
func.func @loop(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}, %arg1: tensor<i1>) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>, <@mesh, []>]>}
    cond {
    stablehlo.return %iterArg_0 : tensor<i1>
  } do {
    %3 = stablehlo.tanh %iterArg {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"a"}]>]>} : tensor<8x8xf32>
    stablehlo.return %3, %iterArg_0 : tensor<8x8xf32>, tensor<i1>
  }
  return %0#0 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @returned_value(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[RESHARD]] : tensor<8x8xf32>
// PART-LABEL: func.func @returned_value(
// PART-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
// PART-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// PART-NEXT:   return %arg0 : tensor<8x8xf32>
func.func @returned_value(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  return %arg0 : tensor<8x8xf32>
}
