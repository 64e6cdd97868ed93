// RUN: shardy-opt %s -split-input-file -sdy-reshard-to-collectives | filecheck %s
// RUN: shardy-opt %s -split-input-file -sdy-reshard-to-collectives='keep-redundant-reshards=true' | filecheck %s --check-prefix=KEEP

// A reshard becomes the collectives that carry it out: gathers for axes that go, slices for axes that come, an
// all-to-all for axes that change their dimension, a permute for axes in another order.

sdy.mesh @mesh = <["a"=2, "b"=2, "c"=4]>

// CHECK-LABEL: func.func @gather(
// CHECK-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>})
// CHECK-SAME:    -> tensor<16x8xf32> {
// CHECK-NEXT:   %[[ALL_GATHER:.*]] = sdy.all_gather [{"b"}, {}] %arg0 out_sharding=<@mesh, [{"a"}, {}]> : tensor<16x8xf32>
// CHECK-NEXT:   return %[[ALL_GATHER]] : tensor<16x8xf32>
// KEEP-LABEL: func.func @gather(
// KEEP-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>})
// KEEP-SAME:    -> tensor<16x8xf32> {
// KEEP-NEXT:   %[[ALL_GATHER:.*]] = sdy.all_gather [{"b"}, {}] %arg0 out_sharding=<@mesh, [{"a"}, {}]> : tensor<16x8xf32>
// KEEP-NEXT:   return %[[ALL_GATHER]] : tensor<16x8xf32>
func.func @gather(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}) -> tensor<16x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2, "c"=4]>

// CHECK-LABEL: func.func @slice(
// CHECK-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<16x8xf32> {
// CHECK-NEXT:   %[[ALL_SLICE:.*]] = sdy.all_slice [{"b"}, {"c"}] %arg0 out_sharding=<@mesh, [{"a", "b"}, {"c"}]> : tensor<16x8xf32>
// CHECK-NEXT:   return %[[ALL_SLICE]] : tensor<16x8xf32>
// KEEP-LABEL: func.func @slice(
// KEEP-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// KEEP-SAME:    -> tensor<16x8xf32> {
// KEEP-NEXT:   %[[ALL_SLICE:.*]] = sdy.all_slice [{"b"}, {"c"}] %arg0 out_sharding=<@mesh, [{"a", "b"}, {"c"}]> : tensor<16x8xf32>
// KEEP-NEXT:   return %[[ALL_SLICE]] : tensor<16x8xf32>
func.func @slice(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<16x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"a", "b"}, {"c"}]> : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2, "c"=4]>

// CHECK-LABEL: func.func @all_to_all(
// CHECK-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<16x8xf32> {
// CHECK-NEXT:   %[[ALL_TO_ALL:.*]] = sdy.all_to_all [{"a"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {"a"}]> : tensor<16x8xf32>
// CHECK-NEXT:   return %[[ALL_TO_ALL]] : tensor<16x8xf32>
// KEEP-LABEL: func.func @all_to_all(
// KEEP-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// KEEP-SAME:    -> tensor<16x8xf32> {
// KEEP-NEXT:   %[[ALL_TO_ALL:.*]] = sdy.all_to_all [{"a"}: 0->1] %arg0 out_sharding=<@mesh, [{}, {"a"}]> : tensor<16x8xf32>
// KEEP-NEXT:   return %[[ALL_TO_ALL]] : tensor<16x8xf32>
func.func @all_to_all(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<16x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{}, {"a"}]> : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2, "c"=4]>

// CHECK-LABEL: func.func @permute(
// CHECK-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>})
// CHECK-SAME:    -> tensor<16x8xf32> {
// CHECK-NEXT:   %[[COLLECTIVE_PERMUTE:.*]] = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"b", "a"}, {}]> : tensor<16x8xf32>
// CHECK-NEXT:   return %[[COLLECTIVE_PERMUTE]] : tensor<16x8xf32>
// KEEP-LABEL: func.func @permute(
// KEEP-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>})
// KEEP-SAME:    -> tensor<16x8xf32> {
// KEEP-NEXT:   %[[COLLECTIVE_PERMUTE:.*]] = sdy.collective_permute %arg0 out_sharding=<@mesh, [{"b", "a"}, {}]> : tensor<16x8xf32>
// KEEP-NEXT:   return %[[COLLECTIVE_PERMUTE]] : tensor<16x8xf32>
func.func @permute(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>}) -> tensor<16x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"b", "a"}, {}]> : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// -----

// A part of "c" moves, the other part is gathered.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=4]>

// CHECK-LABEL: func.func @sub_axes(
// CHECK-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}, {}]>})
// CHECK-SAME:    -> tensor<16x8xf32> {
// CHECK-NEXT:   %[[ALL_SLICE:.*]] = sdy.all_slice [{}, {"a"}] %arg0 out_sharding=<@mesh, [{"c"}, {"a"}]> : tensor<16x8xf32>
// CHECK-NEXT:   %[[ALL_GATHER:.*]] = sdy.all_gather [{"c":(2)2}, {}] %[[ALL_SLICE]] out_sharding=<@mesh, [{"c":(1)2}, {"a"}]> : tensor<16x8xf32>
// CHECK-NEXT:   return %[[ALL_GATHER]] : tensor<16x8xf32>
// KEEP-LABEL: func.func @sub_axes(
// KEEP-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}, {}]>})
// KEEP-SAME:    -> tensor<16x8xf32> {
// KEEP-NEXT:   %[[ALL_SLICE:.*]] = sdy.all_slice [{}, {"a"}] %arg0 out_sharding=<@mesh, [{"c"}, {"a"}]> : tensor<16x8xf32>
// KEEP-NEXT:   %[[ALL_GATHER:.*]] = sdy.all_gather [{"c":(2)2}, {}] %[[ALL_SLICE]] out_sharding=<@mesh, [{"c":(1)2}, {"a"}]> : tensor<16x8xf32>
// KEEP-NEXT:   return %[[ALL_GATHER]] : tensor<16x8xf32>
func.func @sub_axes(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c"}, {}]>}) -> tensor<16x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"c":(1)2}, {"a"}]> : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}

// -----

// Nothing to do.
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=4]>

// CHECK-LABEL: func.func @redundant(
// CHECK-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// CHECK-SAME:    -> tensor<16x8xf32> {
// CHECK-NEXT:   return %arg0 : tensor<16x8xf32>
// KEEP-LABEL: func.func @redundant(
// KEEP-SAME:    %arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
// KEEP-SAME:    -> tensor<16x8xf32> {
// KEEP-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<16x8xf32>
// KEEP-NEXT:   return %[[RESHARD]] : tensor<16x8xf32>
func.func @redundant(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<16x8xf32> {
  %0 = sdy.reshard %arg0 <@mesh, [{"a"}, {}]> : tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}
