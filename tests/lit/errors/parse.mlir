// RUN: not shardy-opt %s -split-input-file 2>&1 | filecheck %s

// What cannot be parsed, or breaks a rule of a sharding, is an error at its line; each part of the file has its own.

// CHECK: parse.mlir:[[@LINE+1]]:{{[0-9]+}}: error: 'func.func' op arg 0 - unknown mesh: @nowhere
func.func @unknown_mesh(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@nowhere, [{"a"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2]>

// CHECK: parse.mlir:[[@LINE+1]]:{{[0-9]+}}: error: 'func.func' op arg 0 - unknown axis name: "b"
func.func @unknown_axis(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2]>

// CHECK: parse.mlir:[[@LINE+1]]:{{[0-9]+}}: error: 'func.func' op arg 0 - sharding doesn't match tensor rank: 2 != 1
func.func @wrong_rank(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}

// -----

sdy.mesh @mesh = <["a"=2]>

// CHECK: parse.mlir:[[@LINE+1]]:{{[0-9]+}}: error: 'func.func' op arg 0 - duplicate axis ref: "a"
func.func @axis_twice(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"a"}]>}) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=4]>

// CHECK: parse.mlir:[[@LINE+1]]:{{[0-9]+}}: error: 'func.func' op arg 0 - both sub-axis and full-axis are used for axis name: "a"
func.func @overlapping_parts(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)2}, {"a"}]>}) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}

// -----

sdy.mesh @mesh = <["a"=4]>

// CHECK: parse.mlir:[[@LINE+1]]:{{[0-9]+}}: error: 'func.func' op arg 0 - sub-axis next pre-size 3 doesn't divide the size of the full axis 4: "a":(1)3
func.func @part_does_not_divide(%arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a":(1)3}, {}]>}) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}

// -----

// CHECK: parse.mlir:[[@LINE+1]]:{{[0-9]+}}: error: expected non-function type
func.func @not_a_type(%arg0: tensor<8xnothing>) {
  return
}
