// RUN: not shardy-opt %s -sdy-basic-propagatee 2>&1 | filecheck %s
// RUN: not shardy-opt %s -sdy-basic-propagate='keep-rules=true' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not shardy-opt %s -sdy-basic-propagate='keep-sharding-rules=maybe' 2>&1 | filecheck %s --check-prefix=VALUE
// RUN: not shardy-opt %s -sdy-aggressive-propagate='propagation-strategy=fast' 2>&1 | filecheck %s --check-prefix=STRATEGY
// RUN: not shardy-opt %s --pass-pipeline='builtin.module(sdy-basic-propagate' 2>&1 | filecheck %s --check-prefix=BRACKET

// A pass, an option or a value that does not exist: the message names it and what there is.

// CHECK: error: {{.*}}'-sdy-basic-propagatee'
// CHECK-NEXT: did you mean sdy-basic-propagate
// OPTION: error: sdy-basic-propagate {{.*}}'keep-rules'
// OPTION-NEXT: did you mean keep-sharding-rules?
// VALUE: error: 'maybe' {{.*}}keep-sharding-rules{{.*}}sdy-basic-propagate
// VALUE-NEXT: expected true or false
// STRATEGY: error: {{.*}}'fast'
// STRATEGY-NEXT: use one of basic, aggressive, basic-then-aggressive
// BRACKET: error: a closing parenthesis or brace is missing in the pipeline 'builtin.module(sdy-basic-propagate'
func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  return %arg0 : tensor<8x8xf32>
}
