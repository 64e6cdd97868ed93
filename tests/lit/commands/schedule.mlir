// RUN: shardy schedule | filecheck %s
// RUN: shardy schedule --builtin flat | filecheck %s --check-prefix=FLAT
// RUN: shardy schedule --builtin forward-only --toml | filecheck %s --check-prefix=TOML
// RUN: not shardy schedule --builtin nothing 2>&1 | filecheck %s --check-prefix=NOTHING

// The levels of schedules, as text and as TOML.

// CHECK: 0. pass-through ops whose operands have one use:
// CHECK-NEXT: sdy.data_flow_edge | sdy.func_data_flow_edge | Elementwise | PassThrough, single use -> BOTH
// CHECK-NEXT: ForwardPassThrough, single use -> FORWARD
// CHECK-NEXT: 1. pass-through ops:
// CHECK-NEXT: sdy.data_flow_edge | sdy.func_data_flow_edge | Elementwise | PassThrough -> BOTH
// CHECK-NEXT: ForwardPassThrough -> FORWARD
// CHECK-NEXT: 2. pass-through factors, broadcasts backward:
// CHECK-NEXT: *, except Broadcast, factors pass_through -> BOTH
// CHECK-NEXT: Broadcast, factors pass_through -> BACKWARD
// CHECK-NEXT: 3. all factors, broadcasts backward:
// CHECK-NEXT: *, except Broadcast -> BOTH
// CHECK-NEXT: Broadcast -> BACKWARD
// CHECK-NEXT: 4. everything:
// CHECK-NEXT: * -> BOTH

// FLAT: 0. everything:
// FLAT-NEXT: * -> BOTH
// FLAT-NOT: 1.

// TOML: name = "pass-through ops whose operands have one use"
// TOML: { traits = ["ForwardPassThrough"], uses = "single", direction = "forward" },
// TOML-NOT: direction = "backward"
// TOML: name = "everything"

// NOTHING: error: {{.*}}'nothing'
