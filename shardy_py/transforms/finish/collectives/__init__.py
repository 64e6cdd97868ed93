"""Plans for reshards: the collectives from one sharding to another, found on shardings alone."""

from shardy_py.transforms.finish.collectives.collective import Collective
from shardy_py.transforms.finish.collectives.plan import plan_collectives

__all__ = ["Collective", "plan_collectives"]
