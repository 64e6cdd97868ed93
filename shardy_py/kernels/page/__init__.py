"""The page of stages: a kernel's modules, PTX and machine code beside each other, linked by the ops of its fusion."""
