// RUN: shardy-opt %s -sdy-populate-op-sharding-rules | filecheck %s
// RUN: shardy-opt %s -sdy-populate-op-sharding-rules='conservative-propagation=true' | filecheck %s

// Ops that need a whole dimension on one device (sort, FFT, Cholesky, triangular solve, top-k) have a factor there
// that needs replication, and pass-through factors elsewhere.

// CHECK-LABEL: func.func @whole_dimensions(
// CHECK-SAME:    %arg0: tensor<4x8xf32>,
// CHECK-SAME:    %arg1: tensor<4x8xcomplex<f32>>,
// CHECK-SAME:    %arg2: tensor<2x8x8xf32>,
// CHECK-SAME:    %arg3: tensor<2x8x4xf32>)
// CHECK-SAME:    -> (tensor<4x8xf32>, tensor<4x8xcomplex<f32>>, tensor<2x8x8xf32>, tensor<2x8x4xf32>) {
// CHECK-NEXT:   %[[SORT:.*]] = "stablehlo.sort"(%arg0) <{dimension = 1 : i64}> ({
// CHECK-NEXT:   ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
// CHECK-NEXT:     %[[COMPARE:.*]] = stablehlo.compare LT, %arg4, %arg5 {sdy.sharding_rule = #sdy.op_sharding_rule<([], [])->([])>}
// CHECK-NEXT:     stablehlo.return %[[COMPARE]] : tensor<i1>
// CHECK-NEXT:   }) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8} need_replication={j}>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT:   %[[FFT:.*]] = stablehlo.fft %arg1, type = FFT, length = [8] {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=4, j=8} need_replication={j}>}
// CHECK-NEXT:   %[[CHOLESKY:.*]] = stablehlo.cholesky %arg2, lower = true {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, j, k]) {i=2, j=8, k=8} need_replication={j, k}>}
// CHECK-NEXT:   %[[TRIANGULAR_SOLVE:.*]] = "stablehlo.triangular_solve"(%arg2, %arg3) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, l], [i, j, k])->([i, l, k]) {i=2, j=8, k=4, l=8} need_replication={j, k, l}>}
// CHECK-NEXT:   return %[[SORT]], %[[FFT]], %[[CHOLESKY]], %[[TRIANGULAR_SOLVE]] : tensor<4x8xf32>, tensor<4x8xcomplex<f32>>, tensor<2x8x8xf32>, tensor<2x8x4xf32>
func.func @whole_dimensions(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xcomplex<f32>>, %arg2: tensor<2x8x8xf32>, %arg3: tensor<2x8x4xf32>) -> (tensor<4x8xf32>, tensor<4x8xcomplex<f32>>, tensor<2x8x8xf32>, tensor<2x8x4xf32>) {
  %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %4 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.fft %arg1, type = FFT, length = [8] : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
  %2 = stablehlo.cholesky %arg2, lower = true : tensor<2x8x8xf32>
  %3 = "stablehlo.triangular_solve"(%arg2, %arg3) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %0, %1, %2, %3 : tensor<4x8xf32>, tensor<4x8xcomplex<f32>>, tensor<2x8x8xf32>, tensor<2x8x4xf32>
}
