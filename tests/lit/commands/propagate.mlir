// RUN: shardy propagate %s --quiet | filecheck %s
// RUN: shardy propagate %s --quiet --strategy basic | filecheck %s --check-prefix=BASIC
// RUN: shardy propagate %s --quiet --in-sharding 'arg1=[{}, {"b"}]' | filecheck %s --check-prefix=GIVEN
// RUN: shardy propagate %s --quiet --out-sharding 'result0=[{"b"}, {}]' | filecheck %s --check-prefix=RESULT
// RUN: shardy propagate %s --quiet --schedule flat | filecheck %s

// The command with shardings from the command line, a strategy, a schedule.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// CHECK-SAME:    %arg1: tensor<16x8xf32>)
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// CHECK-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// CHECK-NEXT:   return %[[DOT_GENERAL]] : tensor<8x8xf32>
// BASIC-LABEL: func.func @main(
// BASIC-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// BASIC-SAME:    %arg1: tensor<16x8xf32>)
// BASIC-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// BASIC-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}]>]>}
// BASIC-NEXT:   return %[[DOT_GENERAL]] : tensor<8x8xf32>
// GIVEN-LABEL: func.func @main(
// GIVEN-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// GIVEN-SAME:    %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>})
// GIVEN-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
// GIVEN-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>}
// GIVEN-NEXT:   return %[[DOT_GENERAL]] : tensor<8x8xf32>
// RESULT-LABEL: func.func @main(
// RESULT-SAME:    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
// RESULT-SAME:    %arg1: tensor<16x8xf32>)
// RESULT-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) {
// RESULT-NEXT:   %[[DOT_GENERAL:.*]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}, {}]>]>}
// RESULT-NEXT:   return %[[DOT_GENERAL]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}]>}, %arg1: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
