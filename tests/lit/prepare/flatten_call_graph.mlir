// RUN: shardy-opt %s -sdy-flatten-call-graph | filecheck %s

// Every call gets a function of its own: the first call keeps the original, each other one gets a copy, of the
// functions that this calls, too. A copy names its origin.

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
// CHECK-NEXT:   %[[CALL:.*]] = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[CALL_1:.*]] = call @f_1(%[[CALL]]) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   %[[CALL_2:.*]] = call @g_2(%[[CALL_1]]) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   return %[[CALL]], %[[CALL_2]] : tensor<8x8xf32>, tensor<8x8xf32>
// CHECK-LABEL: func.func private @f(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[CALL:.*]] = call @g(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   return %[[CALL]] : tensor<8x8xf32>
// CHECK-LABEL: func.func private @g(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 : tensor<8x8xf32>
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
// CHECK-LABEL: func.func private @g_0(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> attributes {sdy.original_func_name = "g"} {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 : tensor<8x8xf32>
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
// CHECK-LABEL: func.func private @f_1(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> attributes {sdy.original_func_name = "f"} {
// CHECK-NEXT:   %[[CALL:.*]] = call @g_0(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
// CHECK-NEXT:   return %[[CALL]] : tensor<8x8xf32>
// CHECK-LABEL: func.func private @g_2(
// CHECK-SAME:    %arg0: tensor<8x8xf32>)
// CHECK-SAME:    -> tensor<8x8xf32> attributes {sdy.original_func_name = "g"} {
// CHECK-NEXT:   %[[TANH:.*]] = stablehlo.tanh %arg0 : tensor<8x8xf32>
// CHECK-NEXT:   return %[[TANH]] : tensor<8x8xf32>
func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = call @f(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = call @f(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = call @g(%1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

func.func private @f(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = call @g(%arg0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

func.func private @g(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
