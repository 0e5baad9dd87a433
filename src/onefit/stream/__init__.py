"""Rows that do not fit, or that lie on many machines: one pass, whoever runs it."""

from __future__ import annotations

from onefit.stream.approximation import Fourier, Nystrom

__all__ = ["Fourier", "Nystrom"]
