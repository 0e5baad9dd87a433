"""What the caller of a command asked for, before anything heavy is imported."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Options"]


@dataclass(frozen=True)
class Options:
    """What the caller asked for; None and () stand for "choose"."""

    task: str = "auto"
    loss: str | None = None
    kernels: tuple[str, ...] = ()
    criterion: str = "cv"
    compare: tuple[str, ...] | None = None
    method: str = "auto"
    folds: int = 10
    seed: int = 0
    jobs: int | None = None
    tol: float | None = None
    calibrate: str | None = None
    approximation: str | None = None
    components: int | None = None
    device: str | None = None
    minutes: float | None = None

    @property
    def whole(self) -> bool:
        """Whether it is the whole kernel or nothing."""
        return self.approximation is None and self.minutes is None
