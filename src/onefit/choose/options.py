"""What the caller asked for, before anything heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Options"]

#: what an option is called in Python, where that is another word
IN_PYTHON = {"folds": "cv", "kernel": "kernels", "jobs": "n_jobs"}
IN_PYTHON |= {"metric": "scoring", "class-weight": "class_weight", "grid": "param_grid"}


@dataclass(frozen=True)
class Options:
    """What the caller asked for; None and () stand for "choose".

    Attributes
    ----------
    amounts_by : str
        The metric of a regression where none was asked for. Of all held-out rows together, R^2 and
        the root mean squared error rank candidates alike: the first is what Python users expect,
        the second is in the unit of the target.
    python : bool
        Whether messages call options by their names in Python, and the search itself says what
        does not fit into memory; commands say it before anything is encoded.
    """

    task: str = "auto"
    loss: str | None = None
    kernels: tuple[str, ...] = ()
    criterion: str = "cv"
    compare: tuple[str, ...] | None = None
    method: str = "auto"
    folds: Any = 5
    seed: int = 0
    jobs: int | None = None
    tol: float | None = None
    calibrate: str | None = None
    approximation: str | None = None
    components: int | None = None
    device: str | None = None
    minutes: float | None = None
    metric: Any = None
    gammas: tuple[float, ...] = ()
    lams: tuple[float, ...] = ()
    grid: Any = None
    class_weight: Any = None
    scale: str = "auto"
    amounts_by: str = "neg_root_mean_squared_error"
    python: bool = False

    @property
    def whole(self) -> bool:
        """Whether it is the whole kernel or nothing."""
        return self.approximation is None and self.minutes is None

    @property
    def may_be_robust(self) -> bool:
        """Whether outliers may change the loss: not if the caller gave a loss, metric or grid."""
        said = self.loss or self.metric or self.compare or self.grid
        return not said and self.criterion == "cv" and self.method == "auto" and self.tol is None

    def word(self, name: str) -> str:
        """An option's name as the caller knows it."""
        return IN_PYTHON.get(name, name) if self.python else f"--{name}"

    def said(self, name: str, value: Any) -> str:
        """An option with a value, as the caller would write it."""
        word = self.word(name)
        return f"{word}={value!r}" if self.python else f"{word} {value}"
