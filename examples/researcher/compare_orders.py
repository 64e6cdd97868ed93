"""Compare orders of ops on a mixture of experts, say where two part, and draw the costs; needs `cli`, `jax`, `plot`.

python examples/researcher/compare_orders.py [FOLDER FOR THE PICTURE]
"""

import sys
from pathlib import Path

from programs import make_mixture

import shardy_py as sdy
from shardy_py.cost.report.comparison import print_comparison
from shardy_py.cost.report.plots import draw_comparison
from shardy_py.cost.sweeps.named_schedules import named_schedules
from shardy_py.explain.reports import format_diff

SCHEDULES = ("default", "flat", "elementwise-first", "contractions-first", "forward-only", "reversed")

program = make_mixture()
comparison = sdy.compare_schedules(program, SCHEDULES, machine="h100-8", random=4, seed=0)
print_comparison(comparison)

best, worst = comparison.rows[0], comparison.rows[-1]
for row in (best, worst):
    print(f"{row.name} sends {row.communication_bytes / 2**20:.1f} MiB in {row.num_collectives} collectives")
print("\nThe first decisions by which two orders part:\n")
difference = sdy.diff_schedules(sdy.Session.open(program), *named_schedules(["default", "flat"]))
print(format_diff(difference, limit=3))

if len(sys.argv) > 1:
    Path(sys.argv[1], "orders.svg").write_bytes(draw_comparison(comparison, "svg"))
