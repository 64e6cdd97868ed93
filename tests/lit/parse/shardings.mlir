// RUN: shardy-opt %s | filecheck %s
// RUN: shardy-opt %s | filecheck %s --check-prefix=FORMS

// Every form of a tensor sharding is printed as it was read: open and closed dimensions, priorities, sub-axes,
// replicated and unreduced axes, inlined meshes, scalars, names with special characters.

// FORMS: sdy.mesh @mesh = <["a"=2, "b"=4, "c d"=2]>
// FORMS: sdy.mesh @one_device = <[], device_ids=[3]>
// FORMS: sdy.mesh @ordered = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
// FORMS: sdy.mesh @empty = <[]>
sdy.mesh @mesh = <["a"=2, "b"=4, "c d"=2]>
sdy.mesh @one_device = <[], device_ids=[3]>
sdy.mesh @ordered = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
sdy.mesh @empty = <[]>

// CHECK-LABEL: func.func @shardings(
// CHECK-SAME:    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b":(1)2}, {?}]>},
// CHECK-SAME:    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b":(2)2, ?}p2, {?}p0]>},
// CHECK-SAME:    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], replicated={"a", "b":(2)2}, unreduced={"c d"}>},
// CHECK-SAME:    %arg3: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>},
// CHECK-SAME:    %arg4: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["z"=2]>, [{"z"}, {?}]>},
// CHECK-SAME:    %arg5: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@one_device, []>},
// CHECK-SAME:    %arg6: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@empty, [{?}, {}]>})
// CHECK-SAME:    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c d"}, {?}]>}) {
// CHECK-NEXT:   return %arg0 : tensor<8x8xf32>
func.func @shardings(
    %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b":(1)2}, {?}]>},
    %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b":(2)2, ?}p2, {?}p0]>},
    %arg2: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], replicated={"a", "b":(2)2}, unreduced={"c d"}>},
    %arg3: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>},
    %arg4: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["z"=2]>, [{"z"}, {?}]>},
    %arg5: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@one_device, []>},
    %arg6: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@empty, [{?}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"c d"}, {?}]>}) {
  return %arg0 : tensor<8x8xf32>
}
