// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -reduce-in-parts | filecheck %s

// Devices that hold the same partial results combine a part each, and gather the parts.

sdy.mesh @mesh = <["x"=4, "y"=2]>

// CHECK-LABEL: func.func @main(
// CHECK:         %[[PRODUCT:.*]] = stablehlo.dot_general
// CHECK-NEXT:    %[[PART:.*]] = sdy.all_slice [{"y"}, {}] %[[PRODUCT]]
// CHECK-NEXT:    %[[REDUCED:.*]] = sdy.all_reduce {"x"} %[[PART]] out_sharding=<@mesh, [{"y"}, {}]>
// CHECK-NEXT:    %[[ALL:.*]] = sdy.all_gather [{"y"}, {}] %[[REDUCED]]
// CHECK-NEXT:    return %[[ALL]]
func.func @main(%a: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}

// A reduce-scatter cuts the first dimension, so that the parts are along the second one.

// CHECK-LABEL: func.func @scattered(
// CHECK:         sdy.all_slice [{}, {"y"}]
// CHECK-NEXT:    sdy.reduce_scatter [{"x"}, {}] %{{.*}} out_sharding=<@mesh, [{"x"}, {"y"}]>
// CHECK-NEXT:    sdy.all_gather [{}, {"y"}]
func.func @scattered(%a: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = sdy.reduce_scatter [{"x"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}

// What is partial along both axes, one after the other, is equal on no two devices.

// CHECK-LABEL: func.func @twice(
// CHECK-NOT:     sdy.all_slice
// CHECK:         return
func.func @twice(%a: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}]>}, %b: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> (tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = sdy.all_reduce {"x"} %0 out_sharding=<@mesh, [{}, {}]> : tensor<32x32xf32>
  %2 = sdy.all_reduce {"y"} %1 out_sharding=<@mesh, [{}, {}]> : tensor<32x32xf32>
  return %2 : tensor<32x32xf32>
}
