// REFERENCE: no with upstream=head, jaxlib 0.10.2 is older than the head of upstream
// RUN: shardy-opt %s -sdy-export-pipeline='upstream=head' | filecheck %s
// RUN: shardy-opt %s -sdy-export-pipeline='upstream=head inline-meshes=false' | filecheck %s --check-prefix=JAXLIB
// RUN: shardy-opt %s -sdy-propagation-pipeline='upstream=head inline-meshes=true' | filecheck %s
// RUN: shardy-opt %s -sdy-export-pipeline | filecheck %s --check-prefix=JAXLIB

// The export pipeline of upstream's head checks unreduced axes, and ends with meshes in the places of their names.

// CHECK-NOT: sdy.mesh
// CHECK-LABEL: func @main
// CHECK-SAME: #sdy.sharding<mesh<["x"=2]>, [{"x"}]>
// JAXLIB-LABEL: func @main
// JAXLIB-SAME: #sdy.sharding<@mesh, [{"x"}]>
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}
