// RUN: shardy-opt %s -split-input-file -sdy-insert-explicit-reshards='enable-full-version=true' | filecheck %s

// Dimensions that need replication are gathered before the op and sharded again behind it; an FFT moves the axis to
// another dimension meanwhile.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @cholesky(
// CHECK-SAME:    %arg0: tensor<2x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}, {}]>})
// CHECK-SAME:    -> (tensor<2x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}, {}]>}) {
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{"a"}, {}, {}]> : tensor<2x8x8xf32>
// CHECK-NEXT:   %[[CHOLESKY:.*]] = stablehlo.cholesky %[[RESHARD]], lower = true {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {}, {}]>]>}
// CHECK-NEXT:   %[[RESHARD_1:.*]] = sdy.reshard %[[CHOLESKY]] <@mesh, [{"a"}, {"b"}, {}]> : tensor<2x8x8xf32>
// CHECK-NEXT:   return %[[RESHARD_1]] : tensor<2x8x8xf32>
func.func @cholesky(%arg0: tensor<2x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}, {}]>}) -> (tensor<2x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}, {}]>}) {
  %0 = stablehlo.cholesky %arg0, lower = true {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}, {}]>]>} : tensor<2x8x8xf32>
  return %0 : tensor<2x8x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @fft(
// CHECK-SAME:    %arg0: tensor<4x8xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
// CHECK-SAME:    -> (tensor<4x8xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
// CHECK-NEXT:   %[[RESHARD:.*]] = sdy.reshard %arg0 <@mesh, [{"a", "b"}, {}]> : tensor<4x8xcomplex<f32>>
// CHECK-NEXT:   %[[FFT:.*]] = stablehlo.fft %[[RESHARD]], type = FFT, length = [8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a", "b"}, {}]>]>}
// CHECK-NEXT:   %[[RESHARD_1:.*]] = sdy.reshard %[[FFT]] <@mesh, [{"a"}, {"b"}]> : tensor<4x8xcomplex<f32>>
// CHECK-NEXT:   return %[[RESHARD_1]] : tensor<4x8xcomplex<f32>>
func.func @fft(%arg0: tensor<4x8xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> (tensor<4x8xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = stablehlo.fft %arg0, type = FFT, length = [8] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
  return %0 : tensor<4x8xcomplex<f32>>
}
