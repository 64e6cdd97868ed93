// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -run-as-used | filecheck %s

sdy.mesh @mesh = <["x"=4]>
sdy.mesh @mesh_2d = <["x"=4, "y"=2]>

// The slice cannot have "x" along dimension 0. It gets it where its user wants it, in one move instead of two.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[MOVED:.*]] = sdy.all_to_all [{"x"}: 0->2] %arg0 out_sharding=<@mesh, [{}, {}, {"x"}]>
// CHECK-NEXT:    %[[ROW:.*]] = stablehlo.dynamic_slice %[[MOVED]], %arg1, %arg1, %arg1, sizes = [1, 8, 16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {"x"}]>]>}
// CHECK-NEXT:    return %[[ROW]]
func.func @main(
    %a: tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}, %i: tensor<i32>)
    -> (tensor<1x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}]>}) {
  %0 = sdy.all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}, {"x"}, {}]> : tensor<4x8x16xf32>
  %1 = stablehlo.dynamic_slice %0, %i, %i, %i, sizes = [1, 8, 16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}, {}]>]>} : (tensor<4x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
  %2 = sdy.all_to_all [{"x"}: 1->2] %1 out_sharding=<@mesh, [{}, {}, {"x"}]> : tensor<1x8x16xf32>
  return %2 : tensor<1x8x16xf32>
}

// The result moves once: that the operand would move instead is left to the plan.

// CHECK-LABEL: func.func @once(
// CHECK-NEXT:    %[[TURNED:.*]] = stablehlo.transpose %arg0
// CHECK-NEXT:    sdy.all_to_all [{"x"}: 1->0] %[[TURNED]]
func.func @once(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.transpose %a, dims = [1, 0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %1 = sdy.all_to_all [{"x"}: 1->0] %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<16x8xf32>
  return %1 : tensor<16x8xf32>
}

// Another user wants the operand as it is moved now, so that one move more would be no fewer bytes.

// CHECK-LABEL: func.func @shared(
// CHECK-NEXT:    %[[MOVED:.*]] = sdy.all_to_all [{"x"}: 0->1] %arg0
// CHECK-NEXT:    %[[ROW:.*]] = stablehlo.dynamic_slice %[[MOVED]]
// CHECK-NEXT:    sdy.all_to_all [{"x"}: 1->2] %[[ROW]]
func.func @shared(
    %a: tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}, {}]>}, %i: tensor<i32>)
    -> (tensor<1x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}]>},
        tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}) {
  %0 = sdy.all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}, {"x"}, {}]> : tensor<4x8x16xf32>
  %1 = stablehlo.dynamic_slice %0, %i, %i, %i, sizes = [1, 8, 16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}, {}]>]>} : (tensor<4x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
  %2 = sdy.all_to_all [{"x"}: 1->2] %1 out_sharding=<@mesh, [{}, {}, {"x"}]> : tensor<1x8x16xf32>
  return %2, %0 : tensor<1x8x16xf32>, tensor<4x8x16xf32>
}

// An all-reduce before the op stays, so that its bytes are not saved: the row moves, which is less than the operand.

// CHECK-LABEL: func.func @summed(
// CHECK-NEXT:    %[[SUM:.*]] = sdy.all_reduce {"y"} %arg0
// CHECK-NEXT:    %[[ROW:.*]] = stablehlo.dynamic_slice %[[SUM]]
// CHECK-NEXT:    sdy.all_to_all [{"x"}: 1->2] %[[ROW]]
func.func @summed(
    %a: tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh_2d, [{}, {"x"}, {}], unreduced={"y"}>}, %i: tensor<i32>)
    -> (tensor<1x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh_2d, [{}, {}, {"x"}]>}) {
  %0 = sdy.all_reduce {"y"} %a out_sharding=<@mesh_2d, [{}, {"x"}, {}]> : tensor<4x8x16xf32>
  %1 = stablehlo.dynamic_slice %0, %i, %i, %i, sizes = [1, 8, 16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh_2d, [{}, {"x"}, {}]>]>} : (tensor<4x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
  %2 = sdy.all_to_all [{"x"}: 1->2] %1 out_sharding=<@mesh_2d, [{}, {}, {"x"}]> : tensor<1x8x16xf32>
  return %2 : tensor<1x8x16xf32>
}

// A reduce-scatter along the axes that move could give the operand as the users want its result.

// CHECK-LABEL: func.func @scattered(
// CHECK-NEXT:    %[[SUM:.*]] = sdy.reduce_scatter
// CHECK-NEXT:    %[[MOVED:.*]] = sdy.all_to_all [{"x"}: 1->2] %[[SUM]]
// CHECK-NEXT:    stablehlo.dynamic_slice %[[MOVED]]
func.func @scattered(
    %a: tensor<4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}], unreduced={"x"}>}, %i: tensor<i32>)
    -> (tensor<1x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"x"}]>}) {
  %0 = sdy.reduce_scatter [{}, {"x"}, {}] %a out_sharding=<@mesh, [{}, {"x"}, {}]> : tensor<4x8x16xf32>
  %1 = stablehlo.dynamic_slice %0, %i, %i, %i, sizes = [1, 8, 16] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}, {}]>]>} : (tensor<4x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
  %2 = sdy.all_to_all [{"x"}: 1->2] %1 out_sharding=<@mesh, [{}, {}, {"x"}]> : tensor<1x8x16xf32>
  return %2 : tensor<1x8x16xf32>
}
