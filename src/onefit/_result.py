"""What a function found: a sentence and, of most, a figure.

Results are frozen dataclasses with the numbers as fields. ``print`` shows the sentence, ``plot``
the figure, and a report shows both (``write_report(..., further=[result])``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["DrawnResult", "Result"]


class Result(ABC):
    """A result with a sentence."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The result in words."""

    def __str__(self) -> str:
        return self.sentence


class DrawnResult(Result):
    """A result with a figure too."""

    @abstractmethod
    def draw(self, axis: Any) -> None:
        """Draw the figure on axes of matplotlib."""

    def plot(self, ax: Any = None) -> Any:
        """Draw the figure on new or given axes of matplotlib, and return them."""
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots(layout="constrained")
        self.draw(ax)
        return ax
