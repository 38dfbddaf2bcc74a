"""Training and evaluation on a Dask cluster, with LightGBM's and XGBoost's own distributed engines."""

from boostlist.distributed.ensembles import fit_ensemble
from boostlist.distributed.parts import read_letor
from boostlist.distributed.training import evaluate, fit

__all__ = ["evaluate", "fit", "fit_ensemble", "read_letor"]
