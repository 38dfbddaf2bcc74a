"""Evaluation: cross-validation over folds, comparisons, significance, reports."""
