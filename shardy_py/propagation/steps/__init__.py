"""The two propagation strategies on one step, and the whole-axis form of the aggressive one."""
