// REFERENCE: no, the option keep-main is our own
// RUN: shardy-opt %s -symbol-dce='keep-main=true' | filecheck %s

// A private main function stays on request where no function is public.

// CHECK-LABEL: func.func private @main(
// CHECK-SAME:    %arg0: tensor<8xf32>)
// CHECK-SAME:    -> tensor<8xf32> {
// CHECK-NEXT:   return %arg0 : tensor<8xf32>
func.func private @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

func.func private @unused(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
