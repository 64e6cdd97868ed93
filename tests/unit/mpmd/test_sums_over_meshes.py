"""Sums of values of several meshes, in a program that also reduces within tensors."""

from __future__ import annotations

import shardy_py as sdy

T = "tensor<4x8xf32>"


def test_sums_over_meshes_are_made_by_ops_on_two_tensors() -> None:
    """The op that combines the values of two meshes is an addition, though a reduction within a tensor comes before."""
    program = sdy.mpmd.partition(
        f"""
        func.func @main(%x: {T}, %y: {T}) -> ({T}, tensor<4xf32>) {{
          %zero = stablehlo.constant dense<0.0> : tensor<f32>
          %rows = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
            : ({T}, tensor<f32>) -> tensor<4xf32>
          %0 = mpmd.named_computation<"a"> (%x) (%i: {T}) {{
            %p = stablehlo.sine %i : {T}
            mpmd.return %p : {T}
          }} : ({T}) -> {T}
          %1 = mpmd.named_computation<"b"> (%y) (%i: {T}) {{
            %p = stablehlo.cosine %i : {T}
            mpmd.return %p : {T}
          }} : ({T}) -> {T}
          %2 = stablehlo.add %0, %1 : {T}
          return %2, %rows : {T}, tensor<4xf32>
        }}
        """,
        {"m0": {"x": 2}, "m1": {"x": 2}},
        {"a": "m0", "b": "m1"},
    )
    names = [op.name for op in program.main.walk()]
    assert names.count("stablehlo.add") == 2  # One in the body of the reduction.
    assert names.count("stablehlo.reduce") == 1


def test_sum_that_the_user_marks_is_made_once() -> None:
    """A sum that two of three meshes use is made on one of them and sent to the other, not made on both."""
    parts = "\n".join(
        f"""%{number} = mpmd.named_computation<"{name}"> (%{operand}) (%i: {T}) {{
              %p = stablehlo.sine %i : {T}
              mpmd.return %p : {T}
            }} : ({T}) -> {T}"""
        for number, (name, operand) in enumerate([("a", "x"), ("b", "y"), ("c", "z")])
    )
    ends = "\n".join(
        f"""%{number} = mpmd.named_computation<"{name}"> (%5) (%i: {T}) {{
              %p = stablehlo.cosine %i : {T}
              mpmd.return %p : {T}
            }} : ({T}) -> {T}"""
        for number, name in [(6, "a_end"), (7, "c_end")]
    )
    program = sdy.mpmd.partition(
        f"""
        func.func @main(%x: {T}, %y: {T}, %z: {T}) -> ({T}, {T}) {{
          {parts}
          %3 = stablehlo.add %0, %1 : {T}
          %4 = stablehlo.add %3, %2 : {T}
          %5 = mpmd.reduce<none> %4 : ({T}) -> {T}
          {ends}
          return %6, %7 : {T}, {T}
        }}
        """,
        {"m0": {"x": 2}, "m1": {"x": 2}, "m2": {"x": 2}},
        {"a": "m0", "b": "m1", "c": "m2", "a_end": "m0", "c_end": "m2"},
    )
    names = [op.name for op in program.main.walk()]
    assert names.count("stablehlo.add") == 2
    assert names.count("mpmd.transfer") == 3  # Two to the mesh of the sum, and one of the sum.
