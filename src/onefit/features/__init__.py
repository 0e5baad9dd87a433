"""Features that replace the kernel matrix, and models of them from sums over rows."""

from __future__ import annotations

from onefit.features.approximation import Fourier, Nystrom

__all__ = ["Fourier", "Nystrom"]
