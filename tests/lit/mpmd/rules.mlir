// RUN: shardy-opt %s -mpmd-rule-based-merge='rules=FragmentMergeRule(sources=[FragmentInfo(origins=["a"],mesh_name="m0"),FragmentInfo(origins=["b"],mesh_name="m0")],target=FragmentInfo(origins=["ab"],stage=3,mesh_name="m0"))' -mpmd-remat-fragment | filecheck %s
// RUN: shardy-opt %s -mpmd-rule-based-schedule='rules=FragmentScheduleRule(ordered_fragments=[FragmentInfo(origins=["g"],call_counter=1,mesh_name="m0")->FragmentInfo(origins=["f"],call_counter=0,mesh_name="m0")])' -mpmd-remat-fragment='merge-remat-fragments=true' | filecheck %s --check-prefix=ORDER
// RUN: shardy-opt %s -mpmd-optimize-pipeline='fragment-remat=true merge-remat-fragments=true merge-forward-with-backward=true fragment-merge-rules=FragmentMergeRule(sources=[FragmentInfo(origins=["a"],mesh_name="m0"),FragmentInfo(origins=["b"],mesh_name="m0")],target=FragmentInfo(origins=["ab"],mesh_name="m0"))' | filecheck %s --check-prefix=BOTH
// RUN: shardy-opt %s -mpmd-optimize-pipeline='fragment-schedule-rules=FragmentScheduleRule(ordered_fragments=[FragmentInfo(origins=["g"],call_counter=1,mesh_name="m0")->FragmentInfo(origins=["f"],call_counter=0,mesh_name="m0")])' | filecheck %s --check-prefix=ORDER
// REFERENCE: no, jaxlib has these passes in its whole pipelines only

// The two sources become one fragment with the label of the target. The forward fragment is computed again for its
// backward one, as another fragment of the mesh is in between.

// CHECK-LABEL: func.func @main
// CHECK-NEXT:    mpmd.fragment<mesh="m0", origin=["ab"], stage=3> (%arg0)
// CHECK-NEXT:      stablehlo.tanh
// CHECK-NEXT:      stablehlo.sine
// CHECK:         mpmd.fragment<mesh="m0", origin=["f"]> (%arg0) {call_counter = 0 : ui32}
// CHECK:         mpmd.fragment<mesh="m0", origin=["g"]>
// CHECK:         %[[R:.*]] = mpmd.fragment<mesh="m0", origin=["f"]> (%arg0) {call_counter = 0 : ui32, remat}
// CHECK:         mpmd.fragment<mesh="m0", origin=["f"(1)]> (%[[R]])

// ORDER:         mpmd.fragment<mesh="m0", origin=["g"]>
// ORDER:         mpmd.fragment<mesh="m0", origin=["f"]>
// ORDER:         mpmd.fragment<mesh="m0", origin=["f"(1)]>

// BOTH:          mpmd.fragment<mesh="m0", origin=["ab"]>
// BOTH:          mpmd.fragment<mesh="m0", origin=["f", "f"(1)]> (%arg0) {call_counter = 0 : ui32}
!t = !mpmd.mesh_tensor<"m0", tensor<4xf32>>
func.func @main(%arg0: !t) -> (!t, !t, !t, !t)
    attributes {topology = #mpmd.topology<<"m0" : <["x"=2]>>>} {
  %0 = mpmd.fragment<mesh="m0", origin=["a"]> (%arg0) (%x: tensor<4xf32>) {
    %5 = stablehlo.tanh %x : tensor<4xf32>
    mpmd.return %5 : tensor<4xf32>
  } : (!t) -> !t
  %1 = mpmd.fragment<mesh="m0", origin=["b"]> (%0) (%x: tensor<4xf32>) {
    %5 = stablehlo.sine %x : tensor<4xf32>
    mpmd.return %5 : tensor<4xf32>
  } : (!t) -> !t
  %2 = mpmd.fragment<mesh="m0", origin=["f"]> (%arg0) {call_counter = 0 : ui32} (%x: tensor<4xf32>) {
    %5 = stablehlo.cosine %x : tensor<4xf32>
    mpmd.return %5 : tensor<4xf32>
  } : (!t) -> !t
  %3 = mpmd.fragment<mesh="m0", origin=["g"]> (%arg0) {call_counter = 1 : ui32} (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!t) -> !t
  %4 = mpmd.fragment<mesh="m0", origin=["f"(1)]> (%2) {call_counter = 0 : ui32} (%x: tensor<4xf32>) {
    %5 = stablehlo.negate %x : tensor<4xf32>
    mpmd.return %5 : tensor<4xf32>
  } : (!t) -> !t
  return %1, %2, %3, %4 : !t, !t, !t, !t
}
