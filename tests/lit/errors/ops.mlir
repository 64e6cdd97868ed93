// RUN: not shardy-opt %s -split-input-file 2>&1 | filecheck %s

// Ops of the sdy dialect that are not valid.

sdy.mesh @mesh = <["a"=2]>

func.func @barrier_both_ways(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: ops.mlir:[[@LINE+1]]:8: error: 'sdy.propagation_barrier' op cannot specify `BOTH` as the direction
  %0 = sdy.propagation_barrier %arg0 allowed_direction=BOTH : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2]>

func.func @body_of_another_shape(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: ops.mlir:[[@LINE+1]]:8: error: 'sdy.manual_computation' op result shape, corresponding sharding, and region result shape at index 0 must match. Expected local shape 'tensor<4xf32>', actual local shape 'tensor<8xf32>'
  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{?}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"} (%arg1: tensor<8xf32>) {
    sdy.return %arg1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2]>

func.func @gather_of_what_is_not_there(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<8xf32> {
  // CHECK: ops.mlir:[[@LINE+1]]:8: error: 'sdy.all_gather' op can't apply gathering axis "a" to operand sharding on dimension 0
  %0 = sdy.all_gather [{"a"}] %arg0 out_sharding=<@mesh, [{}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
