"""What differs between LightGBM and XGBoost: reading groups and weights, scaling an objective."""

from boostlist.boosters.early_stopping import lightgbm_early_stopping, xgboost_early_stopping
from boostlist.boosters.objective import Objective
from boostlist.boosters.position_bias import PositionBias, plot_position_bias, position_bias

__all__ = [
    "Objective",
    "PositionBias",
    "lightgbm_early_stopping",
    "plot_position_bias",
    "position_bias",
    "xgboost_early_stopping",
]
