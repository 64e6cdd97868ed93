// RUN: not shardy-opt %s -split-input-file 2>&1 | filecheck %s

// Rules that do not fit their op, or themselves.

func.func @too_few_mappings(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: rules.mlir:[[@LINE+1]]:8: error: 'stablehlo.add' op number of operands and mappings must match: 2 != 1
  %0 = stablehlo.add %arg0, %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @unknown_factor(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: rules.mlir:[[@LINE+1]]:8: error: 'stablehlo.tanh' op result - expecting factor indices to be within
  %0 = stablehlo.tanh %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([j]) {i=8}>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @two_kinds(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: rules.mlir:[[@LINE+1]]:8: error: 'stablehlo.custom_call' op a factor can only be in one of the reduction, need replication, or permutation factor sets
  %0 = stablehlo.custom_call @f(%arg0) {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8} reduction={i} need_replication={i}>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
