// RUN: shardy-opt %s -sdy-propagation-pipeline | filecheck %s
// RUN: shardy-opt %s -sdy-propagation-pipeline='enable-insert-explicit-collectives=true' | filecheck %s --check-prefix=COLLECTIVES
// RUN: shardy-opt %s -sdy-propagation-pipeline='update-non-divisible-input-output-shardings=false' | filecheck %s --check-prefix=UNEVEN

// Through a loop and a manual computation; edges are put in and taken out by the pipeline. The argument of 5 rows is
// sharded by what divides it, unless uneven inputs are allowed.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
// CHECK-SAME:    %arg1: tensor<i1>,
// CHECK-SAME:    %arg2: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}, tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
// CHECK-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>, <@mesh, []>]>}
// CHECK-NEXT:   cond {
// CHECK-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// CHECK-NEXT:   } do {
// CHECK-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>}
// CHECK-NEXT:     stablehlo.return %[[TANH]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// CHECK-NEXT:   }
// CHECK-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%[[WHILE]]#0) in_shardings=[<@mesh, [{"a"}, {"b"}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"b"} (%arg3: tensor<8x4xf32>) {
// CHECK-NEXT:     %[[NEGATE:.*]] = stablehlo.negate %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:     sdy.return %[[NEGATE]] : tensor<8x4xf32>
// CHECK-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[TANH_1:.*]] = stablehlo.tanh %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   return %[[MANUAL_COMPUTATION]], %[[TANH_1]] : tensor<8x8xf32>, tensor<5x8xf32>
// COLLECTIVES-LABEL: func.func @main(
// COLLECTIVES-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
// COLLECTIVES-SAME:    %arg1: tensor<i1>,
// COLLECTIVES-SAME:    %arg2: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
// COLLECTIVES-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}, tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
// COLLECTIVES-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>, <@mesh, []>]>}
// COLLECTIVES-NEXT:   cond {
// COLLECTIVES-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// COLLECTIVES-NEXT:   } do {
// COLLECTIVES-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>}
// COLLECTIVES-NEXT:     stablehlo.return %[[TANH]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// COLLECTIVES-NEXT:   }
// COLLECTIVES-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%[[WHILE]]#0) in_shardings=[<@mesh, [{"a"}, {"b"}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"b"} (%arg3: tensor<8x4xf32>) {
// COLLECTIVES-NEXT:     %[[NEGATE:.*]] = stablehlo.negate %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// COLLECTIVES-NEXT:     sdy.return %[[NEGATE]] : tensor<8x4xf32>
// COLLECTIVES-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// COLLECTIVES-NEXT:   %[[ALL_SLICE:.*]] = sdy.all_slice [{"a"}, {}] %arg2 out_sharding=<@mesh, [{"a"}, {}]> : tensor<5x8xf32>
// COLLECTIVES-NEXT:   %[[TANH_1:.*]] = stablehlo.tanh %[[ALL_SLICE]] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// COLLECTIVES-NEXT:   %[[ALL_GATHER:.*]] = sdy.all_gather [{"a"}, {}] %[[TANH_1]] out_sharding=<@mesh, [{}, {}]> : tensor<5x8xf32>
// COLLECTIVES-NEXT:   return %[[MANUAL_COMPUTATION]], %[[ALL_GATHER]] : tensor<8x8xf32>, tensor<5x8xf32>
// UNEVEN-LABEL: func.func @main(
// UNEVEN-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
// UNEVEN-SAME:    %arg1: tensor<i1>,
// UNEVEN-SAME:    %arg2: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// UNEVEN-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}, tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// UNEVEN-NEXT:   %[[WHILE:.*]]:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>, <@mesh, []>]>}
// UNEVEN-NEXT:   cond {
// UNEVEN-NEXT:     stablehlo.return %iterArg_0 : tensor<i1>
// UNEVEN-NEXT:   } do {
// UNEVEN-NEXT:     %[[TANH:.*]] = stablehlo.tanh %iterArg {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>}
// UNEVEN-NEXT:     stablehlo.return %[[TANH]], %iterArg_0 : tensor<8x8xf32>, tensor<i1>
// UNEVEN-NEXT:   }
// UNEVEN-NEXT:   %[[MANUAL_COMPUTATION:.*]] = sdy.manual_computation(%[[WHILE]]#0) in_shardings=[<@mesh, [{"a"}, {"b"}]>] out_shardings=[<@mesh, [{"a"}, {"b"}]>] manual_axes={"b"} (%arg3: tensor<8x4xf32>) {
// UNEVEN-NEXT:     %[[NEGATE:.*]] = stablehlo.negate %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// UNEVEN-NEXT:     sdy.return %[[NEGATE]] : tensor<8x4xf32>
// UNEVEN-NEXT:   } : (tensor<8x8xf32>) -> tensor<8x8xf32>
// UNEVEN-NEXT:   %[[TANH_1:.*]] = stablehlo.tanh %arg2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// UNEVEN-NEXT:   return %[[MANUAL_COMPUTATION]], %[[TANH_1]] : tensor<8x8xf32>, tensor<5x8xf32>
func.func @main(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<i1>, %arg2: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}) -> (tensor<8x8xf32>, tensor<5x8xf32>) {
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x8xf32>, tensor<i1>
    cond {
    stablehlo.return %iterArg_0 : tensor<i1>
  } do {
    %3 = stablehlo.tanh %iterArg : tensor<8x8xf32>
    stablehlo.return %3, %iterArg_0 : tensor<8x8xf32>, tensor<i1>
  }
  %1 = sdy.manual_computation(%0#0) in_shardings=[<@mesh, [{?}, {"b"}]>] out_shardings=[<@mesh, [{?}, {"b"}]>] manual_axes={"b"} (%arg3: tensor<8x4xf32>) {
    %5 = stablehlo.negate %arg3 : tensor<8x4xf32>
    sdy.return %5 : tensor<8x4xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.tanh %arg2 : tensor<5x8xf32>
  return %1, %2 : tensor<8x8xf32>, tensor<5x8xf32>
}
