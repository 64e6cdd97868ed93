"""Modules of TOSA as frontends print them."""

from __future__ import annotations

from collections.abc import Mapping


def main(arguments: str, results: str, body: str) -> str:
    """Return the text of a module; arguments are named ``%arg0`` on."""
    types = ", ".join(f"%arg{number}: tensor<{type_}>" for number, type_ in enumerate(arguments.split()))
    kinds = [f"tensor<{type_}>" for type_ in results.split()]
    return f"{_ALIASES}func.func @main({types}) -> ({', '.join(kinds)}) {{\n{body}\n}}\n"


_ALIASES = """
!z = tensor<1xf32>
!image = tensor<2x4x4x4xf32>
!maps = tensor<2x4x4x8xf32>
!bias = tensor<8xf32>
!rows = tensor<2x4x8xf32>
!product = tensor<1x4x16xf32>
"""
_ZERO = '%z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> !z\n'
MODULES: Mapping[str, tuple[str, dict[int, tuple[str | None, ...]]]] = {
    "perceptron": (
        main(
            "4x1x8xf32 1x8x16xf32 1x16x4xf32 1x1x16xf32",
            "4x1x4xf32",
            _ZERO
            + """
    %s = tosa.const_shape {values = dense<[1, 4, 8]> : tensor<3xindex>} : () -> !tosa.shape<3>
    %0 = tosa.reshape %arg0, %s : (tensor<4x1x8xf32>, !tosa.shape<3>) -> tensor<1x4x8xf32>
    %1 = tosa.matmul %0, %arg1, %z, %z : (tensor<1x4x8xf32>, tensor<1x8x16xf32>, !z, !z) -> !product
    %2 = tosa.add %1, %arg3 : (!product, tensor<1x1x16xf32>) -> !product
    %3 = tosa.clamp %2 {min_val = 0.0 : f32, max_val = 6.0 : f32} : (!product) -> !product
    %4 = tosa.matmul %3, %arg2, %z, %z : (!product, tensor<1x16x4xf32>, !z, !z) -> tensor<1x4x4xf32>
    %t = tosa.const_shape {values = dense<[4, 1, 4]> : tensor<3xindex>} : () -> !tosa.shape<3>
    %5 = tosa.reshape %4, %t : (tensor<1x4x4xf32>, !tosa.shape<3>) -> tensor<4x1x4xf32>
    return %5 : tensor<4x1x4xf32>""",
        ),
        {0: ("d", None, None), 1: (None, None, "m"), 2: (None, "m", None)},
    ),
    "softmax": (
        main(
            "4x8xf32",
            "4x8xf32",
            """
    %0 = tosa.reduce_max %arg0 {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %1 = tosa.sub %arg0, %0 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %2 = tosa.exp %1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = tosa.reduce_sum %2 {axis = 1 : i32} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %4 = tosa.reciprocal %3 : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %c = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
    %5 = tosa.mul %2, %4, %c : (tensor<4x8xf32>, tensor<4x1xf32>, tensor<1xi8>) -> tensor<4x8xf32>
    return %5 : tensor<4x8xf32>""",
        ),
        {0: ("d", "m")},
    ),
    "convolution": (
        main(
            "2x4x4x4xf32 8x3x3x4xf32 8xf32",
            "2x2x2x8xf32",
            _ZERO
            + """
    %0 = tosa.conv2d %arg0, %arg1, %arg2, %z, %z {
      acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>
    } : (!image, tensor<8x3x3x4xf32>, !bias, !z, !z) -> !maps
    %1 = tosa.sigmoid %0 : (!maps) -> !maps
    %2 = tosa.max_pool2d %1 {
      kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>
    } : (!maps) -> tensor<2x2x2x8xf32>
    return %2 : tensor<2x2x2x8xf32>""",
        ),
        {0: ("d", None, None, "m")},
    ),
    "strided": (
        main(
            "1x7x8x4xf32 8x3x3x4xf32 8xf32",
            "1x4x4x8xf32",
            """
    %z = "tosa.const"() <{values = dense<0.5> : tensor<1xf32>}> : () -> !z
    %0 = tosa.conv2d %arg0, %arg1, %arg2, %z, %z {
      acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 0>, stride = array<i64: 2, 2>
    } : (tensor<1x7x8x4xf32>, tensor<8x3x3x4xf32>, !bias, !z, !z) -> tensor<1x4x4x8xf32>
    %1 = tosa.max_pool2d %0 {
      kernel = array<i64: 3, 3>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>
    } : (tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
    return %1 : tensor<1x4x4x8xf32>""",
        ),
        {0: (None, "d", "m", None)},
    ),
    "depthwise": (
        main(
            "2x4x4x4xf32 3x3x4x2xf32 8xf32",
            "2x4x4x8xf32",
            _ZERO
            + """
    %0 = tosa.depthwise_conv2d %arg0, %arg1, %arg2, %z, %z {
      acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>
    } : (!image, tensor<3x3x4x2xf32>, !bias, !z, !z) -> !maps
    %1 = tosa.tanh %0 : (!maps) -> !maps
    return %1 : !maps""",
        ),
        {0: ("d", None, None, "m")},
    ),
    "attention": (
        main(
            "2x4x8xf32 2x4x8xf32",
            "2x4x8xf32",
            _ZERO
            + """
    %0 = tosa.transpose %arg1 {perms = array<i32: 0, 2, 1>} : (!rows) -> tensor<2x8x4xf32>
    %1 = tosa.matmul %arg0, %0, %z, %z : (!rows, tensor<2x8x4xf32>, !z, !z) -> tensor<2x4x4xf32>
    %2 = tosa.exp %1 : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %3 = tosa.matmul %2, %arg1, %z, %z : (tensor<2x4x4xf32>, !rows, !z, !z) -> !rows
    return %3 : !rows""",
        ),
        {0: ("d", None, "m"), 1: (None, "m", None)},
    ),
    "pieces": (
        main(
            "4x8xf32 4x8xf32",
            "4x4xf32 8x8xf32",
            """
    %s = tosa.const_shape {values = dense<[0, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>
    %n = tosa.const_shape {values = dense<[4, 4]> : tensor<2xindex>} : () -> !tosa.shape<2>
    %0 = tosa.slice %arg0, %s, %n : (tensor<4x8xf32>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<4x4xf32>
    %1 = tosa.concat %arg0, %arg1 {axis = 0 : i32} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %2 = tosa.reverse %1 {axis = 1 : i32} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %0, %2 : tensor<4x4xf32>, tensor<8x8xf32>""",
        ),
        {0: ("d", None), 1: (None, "m")},
    ),
    "padded": (
        main(
            "4x6xf32",
            "4x16xf32",
            """
    %c = "tosa.const"() <{values = dense<1.5> : !z}> : () -> !z
    %p = tosa.const_shape {values = dense<[0, 0, 1, 1]> : tensor<4xindex>} : () -> !tosa.shape<4>
    %0 = tosa.pad %arg0, %p, %c : (tensor<4x6xf32>, !tosa.shape<4>, !z) -> tensor<4x8xf32>
    %m = tosa.const_shape {values = dense<[1, 2]> : tensor<2xindex>} : () -> !tosa.shape<2>
    %1 = tosa.tile %0, %m : (tensor<4x8xf32>, !tosa.shape<2>) -> tensor<4x16xf32>
    return %1 : tensor<4x16xf32>""",
        ),
        {0: ("d", "m")},
    ),
    "table": (
        main(
            "2x8x4xf32 2x4xi32",
            "2x4x4xf32 2x4xi32",
            """
    %0 = tosa.gather %arg0, %arg1 : (tensor<2x8x4xf32>, tensor<2x4xi32>) -> tensor<2x4x4xf32>
    %1 = tosa.argmax %0 {axis = 2 : i32} : (tensor<2x4x4xf32>) -> tensor<2x4xi32>
    return %0, %1 : tensor<2x4x4xf32>, tensor<2x4xi32>""",
        ),
        {0: ("d", None, "m")},
    ),
    "choice": (
        main(
            "4x8xf32 4x8xf32",
            "4x8xf32 1x8xi1",
            """
    %0 = tosa.greater %arg0, %arg1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %1 = tosa.select %0, %arg0, %arg1 : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = tosa.logical_not %0 : (tensor<4x8xi1>) -> tensor<4x8xi1>
    %3 = tosa.reduce_any %2 {axis = 0 : i32} : (tensor<4x8xi1>) -> tensor<1x8xi1>
    return %1, %3 : tensor<4x8xf32>, tensor<1x8xi1>""",
        ),
        {0: ("d", None), 1: (None, "m")},
    ),
    "loop": (
        main(
            "i32 4x8xf32",
            "4x8xf32",
            """
    %0:2 = "tosa.while_loop"(%arg0, %arg1) ({
    ^bb0(%i: tensor<i32>, %x: tensor<4x8xf32>):
      %n = "tosa.const"() <{values = dense<7> : tensor<i32>}> : () -> tensor<i32>
      %1 = tosa.greater %n, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      tosa.yield %1 : tensor<i1>
    }, {
    ^bb0(%i: tensor<i32>, %x: tensor<4x8xf32>):
      %one = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %1 = tosa.add %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %2 = tosa.tanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
      tosa.yield %1, %2 : tensor<i32>, tensor<4x8xf32>
    }) : (tensor<i32>, tensor<4x8xf32>) -> (tensor<i32>, tensor<4x8xf32>)
    return %0#1 : tensor<4x8xf32>""",
        ),
        {1: ("d", "m")},
    ),
}
"""Modules by name, with shardings of their arguments over axes ``d`` and ``m``."""
