"""A finished search as numbers, as one HTML file, and as figures in a notebook."""

from onefit.report.criteria import compare_criteria
from onefit.report.page import write_report

__all__ = ["compare_criteria", "write_report"]
