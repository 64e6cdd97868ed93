"""Search for an order of ops that sends fewer bytes than the default one; needs `cli`, `jax`, `plot`, `search`.

python examples/researcher/search_order.py [FOLDER FOR THE PICTURE AND THE SCHEDULE]
"""

import sys
from pathlib import Path

from programs import make_mixture

import shardy_py as sdy
from shardy_py.cost.report.plots import draw_search

search = sdy.search_schedule(make_mixture(), machine="h100-8", minimise="bytes", budget=24, seed=1)
print(f"{'schedule':22}{'MiB sent':>10}{'ms':>8}")
for row in search.comparison.rows[:10]:
    print(f"{row.name:22}{row.communication_bytes / 2**20:10.2f}{row.seconds * 1e3:8.3f}")
print(f"\nThe best one, {search.best.name}, as a file for `shardy propagate --schedule`:\n\n{search.best.schedule}")

if len(sys.argv) > 1:
    folder = Path(sys.argv[1])
    (folder / "search.svg").write_bytes(draw_search(search, "svg"))
    (folder / "best.toml").write_text(search.best.schedule, encoding="utf-8")
