"""What differs between LightGBM and XGBoost: reading groups and weights, scaling an objective."""

from boostlist.boosters.early_stopping import lightgbm_early_stopping, xgboost_early_stopping
from boostlist.boosters.objective import Objective

__all__ = ["Objective", "lightgbm_early_stopping", "xgboost_early_stopping"]
