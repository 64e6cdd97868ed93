// RUN: shardy-opt %s -sdy-pre-order-funcs | filecheck %s

// Callers come before callees, in the order of the calls.

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8xf32>)
// CHECK-SAME:    -> tensor<8xf32> {
// CHECK-NEXT:   %[[CALL:.*]] = call @second(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:   %[[CALL_1:.*]] = call @fourth(%[[CALL]]) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:   return %[[CALL_1]] : tensor<8xf32>
// CHECK-LABEL: func.func private @fourth(
// CHECK-SAME:    %arg0: tensor<8xf32>)
// CHECK-SAME:    -> tensor<8xf32> {
// CHECK-NEXT:   return %arg0 : tensor<8xf32>
// CHECK-LABEL: func.func private @second(
// CHECK-SAME:    %arg0: tensor<8xf32>)
// CHECK-SAME:    -> tensor<8xf32> {
// CHECK-NEXT:   %[[CALL:.*]] = call @third(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
// CHECK-NEXT:   return %[[CALL]] : tensor<8xf32>
// CHECK-LABEL: func.func private @third(
// CHECK-SAME:    %arg0: tensor<8xf32>)
// CHECK-SAME:    -> tensor<8xf32> {
// CHECK-NEXT:   return %arg0 : tensor<8xf32>
func.func private @third(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

func.func private @second(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @third(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @second(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @fourth(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

func.func private @fourth(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
