// RUN: shardy-opt %s -sdy-unflatten-call-graph -symbol-dce | filecheck %s
// RUN: shardy-opt %s -sdy-unflatten-call-graph='dedup-functions-fully=true' -symbol-dce | filecheck %s --check-prefix=FULLY

// Copies of one function whose shardings are equal are united; with full deduplication all are, and the one with the
// most calls wins.

sdy.mesh @mesh = <["a"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[CALL:.*]] = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[CALL_1:.*]] = call @f_0(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[CALL_2:.*]] = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   return %[[CALL]], %[[CALL_1]], %[[CALL_2]] : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
// CHECK-LABEL: func.func private @f(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   return %arg0 : tensor<8x8xf32>
// CHECK-LABEL: func.func private @f_0(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   return %arg0 : tensor<8x8xf32>
// FULLY-LABEL: func.func @main(
// FULLY-SAME:    %arg0: tensor<8x8xf32>)
// FULLY-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
// FULLY-NEXT:   %[[CALL:.*]] = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// FULLY-NEXT:   %[[CALL_1:.*]] = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// FULLY-NEXT:   %[[CALL_2:.*]] = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// FULLY-NEXT:   return %[[CALL]], %[[CALL_1]], %[[CALL_2]] : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
// FULLY-LABEL: func.func private @f(
// FULLY-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// FULLY-SAME:    -> tensor<8x8xf32> {
// FULLY-NEXT:   return %arg0 : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = call @f_0(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = call @f_1(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

func.func private @f(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}

func.func private @f_0(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) -> tensor<8x8xf32> attributes {sdy.original_func_name = "f"} {
  return %arg0 : tensor<8x8xf32>
}

func.func private @f_1(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> attributes {sdy.original_func_name = "f"} {
  return %arg0 : tensor<8x8xf32>
}
