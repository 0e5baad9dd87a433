"""Report of a finished search: an HTML file, figures in a notebook, comparison of criteria."""

from onefit.report.criteria import compare_criteria
from onefit.report.page import write_report

__all__ = ["compare_criteria", "write_report"]
