// RUN: shardy-opt %s -split-input-file -sdy-canonicalize-collectives | filecheck %s

// Collectives that follow each other are simplified.

// A slice of an all-reduce along the same axis is a reduce-scatter.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @reduce_scatter(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[REDUCE_SCATTER:.*]] = sdy.reduce_scatter [{}, {"a"}] %arg0 out_sharding=<@mesh, [{"b"}, {"a"}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[REDUCE_SCATTER]] : tensor<8x8xf32>
func.func @reduce_scatter(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_reduce {"a"} %arg0 out_sharding=<@mesh, [{"b"}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{}, {"a"}] %0 out_sharding=<@mesh, [{"b"}, {"a"}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// A slice of a gather along the same axis is what was there before.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @gather_and_slice(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[ALL_GATHER:.*]] = sdy.all_gather [{"a"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %arg0 : tensor<8x8xf32>
func.func @gather_and_slice(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_gather [{"a"}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_slice [{"a"}, {}] %0 out_sharding=<@mesh, [{"a"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// An all-reduce along no axis is nothing.
sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @reduce_along_no_axis(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
// CHECK-SAME:    -> tensor<8x8xf32> {
// CHECK-NEXT:   %[[ALL_REDUCE:.*]] = sdy.all_reduce {"a"} %arg0 out_sharding=<@mesh, [{"b"}, {}]> : tensor<8x8xf32>
// CHECK-NEXT:   return %[[ALL_REDUCE]] : tensor<8x8xf32>
func.func @reduce_along_no_axis(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) -> tensor<8x8xf32> {
  %0 = sdy.all_reduce {"a"} %arg0 out_sharding=<@mesh, [{"b"}, {}]> : tensor<8x8xf32>
  %1 = sdy.all_reduce {} %0 out_sharding=<@mesh, [{"b"}, {}]> : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
