"""Lowering to machine code: LLVM as text, PTX for devices, machine code of the host."""
