// REFERENCE: no, the pass of jaxlib has no such options
// RUN: shardy-opt %s -sdy-convert-global-to-local='partition-count=4' | filecheck %s
// RUN: shardy-opt %s -sdy-convert-global-to-local='replica-count=4 partition-count=1' | filecheck %s --check-prefix=REPLICAS
// RUN: shardy-opt %s -sdy-convert-global-to-local='trust-shardings=true' | filecheck %s

// The devices of a mesh are partitions of one replica, or replicas of one partition: then collectives have no channel.

sdy.mesh @mesh = <["a"=2, "b"=2]>

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
// CHECK-SAME:    -> (tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// CHECK-NEXT:   %[[ALL_GATHER:.*]] = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<4x16xf32>
// CHECK-NEXT:   return %[[ALL_GATHER]] : tensor<4x16xf32>
// REPLICAS-LABEL: func.func @main(
// REPLICAS-SAME:    %arg0: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
// REPLICAS-SAME:    -> (tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
// REPLICAS-NEXT:   %[[ALL_GATHER:.*]] = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x16xf32>
// REPLICAS-NEXT:   return %[[ALL_GATHER]] : tensor<4x16xf32>
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %0 = sdy.all_gather [{}, {"b"}] %arg0 out_sharding=<@mesh, [{"a"}, {}]> : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
