// REFERENCE: no, the pass is our own
// RUN: shardy-opt %s -tidy-local-program | filecheck %s

// Equal collectives of a local program are one, and one that nothing uses is none.

// CHECK-LABEL: func.func @main(
// CHECK:         %[[GATHER:.*]] = "stablehlo.all_gather"(%arg0)
// CHECK-NOT:     stablehlo.all_gather
// CHECK:         %[[SUM:.*]] = stablehlo.add %[[GATHER]], %[[GATHER]]
// CHECK-NEXT:    return %[[SUM]]
func.func @main(%a: tensor<2xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2xf32>) -> tensor<8xf32>
  %1 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2xf32>) -> tensor<8xf32>
  %2 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<8xf32>) -> tensor<32xf32>
  %3 = stablehlo.add %0, %1 : tensor<8xf32>
  return %3 : tensor<8xf32>
}
