"""What differs between LightGBM and XGBoost: reading groups and weights, scaling an objective."""

from boostlist.boosters.early_stopping import xgboost_early_stopping
from boostlist.boosters.objective import Objective

__all__ = ["Objective", "xgboost_early_stopping"]
