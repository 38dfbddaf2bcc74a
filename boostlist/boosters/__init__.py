"""What differs between LightGBM and XGBoost: reading groups and weights, scaling an objective."""

from boostlist.boosters.objective import Objective

__all__ = ["Objective"]
