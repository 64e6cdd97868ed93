// RUN: not shardy-opt %s -sdy-sharding-group-import 2>&1 | filecheck %s

// A group cannot have members inside and outside of a manual computation.

sdy.mesh @mesh = <["a"=2]>

func.func @main(%arg0: tensor<8x8xf32>) -> (tensor<4x4xf32>, tensor<8x8xf32>) {
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%arg1: tensor<4x8xf32>) {
    sdy.sharding_group %arg1 group_id=0 : tensor<4x8xf32>
    sdy.return %arg1 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.slice %arg0 [0:4, 0:8] : (tensor<8x8xf32>) -> tensor<4x8xf32>
  // CHECK: groups.mlir:[[@LINE+1]]:3: error: 'sdy.sharding_group' op ShardingGroupOps values cannot cross ManualComputationOp boundaries for groupId: 0
  sdy.sharding_group %1 group_id=0 : tensor<4x8xf32>
  %2 = stablehlo.slice %1 [0:4, 0:4] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return %2, %0 : tensor<4x4xf32>, tensor<8x8xf32>
}
