// RUN: shardy-opt %s -sdy-sharding-group-import | filecheck %s

// Groups that share a value are merged, transitively, and the groups that are left are numbered from 0.

// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %arg0: tensor<8xf32>,
// CHECK-SAME:    %arg1: tensor<8xf32>,
// CHECK-SAME:    %arg2: tensor<8xf32>,
// CHECK-SAME:    %arg3: tensor<8xf32>)
// CHECK-NEXT:   sdy.sharding_group %arg0 group_id=0 : tensor<8xf32>
// CHECK-NEXT:   sdy.sharding_group %arg1 group_id=0 : tensor<8xf32>
// CHECK-NEXT:   sdy.sharding_group %arg2 group_id=0 : tensor<8xf32>
// CHECK-NEXT:   sdy.sharding_group %arg3 group_id=1 : tensor<8xf32>
// CHECK-NEXT:   return
func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<8xf32>) {
  sdy.sharding_group %arg0 group_id=7 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id=7 : tensor<8xf32>
  sdy.sharding_group %arg1 group_id=4 : tensor<8xf32>
  sdy.sharding_group %arg2 group_id=4 : tensor<8xf32>
  sdy.sharding_group %arg3 group_id=9 : tensor<8xf32>
  return
}
