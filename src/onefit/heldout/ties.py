"""Decision values without their last digits, which would give the class away.

A classifier has the same value in rows that are far from all others: the intercept, say, plus
nothing. A refit has exactly that, but a formula has it up to rounding, and the rounding depends on
the label of the row: u = y - (y - u) rounds differently for y = -1 and y = 1. A metric of order or
sign would read the label from the rounding: an area under the ROC curve of 1 where nothing is
predicted. So decision values are multiples of a power of two above the rounding errors of labels,
and those below half of it are zero.
"""

from __future__ import annotations

import numpy as np

from onefit._types import Array

__all__ = ["rounded_decisions"]

#: of labels, for values in double precision (7e-12), and in roundings for others
STEP, STEP_IN_ROUNDINGS = 2.0**-37, 4.0


def rounded_decisions(values: Array) -> Array:
    """Multiples of the step; -0.0 becomes 0.0, and values without digits below the step stay.

    Examples
    --------
    >>> import numpy as np
    >>> rounded_decisions(np.array([0.5 - 1e-16, 0.5, -1e-14, 0.25 + 1e-11]))
    array([0.5 , 0.5 , 0.  , 0.25])
    """
    epsilon = float(np.finfo(values.dtype).eps)
    step = values.dtype.type(max(STEP, STEP_IN_ROUNDINGS * epsilon))
    rounded = np.rint(np.clip(values, -step / epsilon, step / epsilon) / step) * step + 0.0
    return np.where(np.abs(values) < step / epsilon, rounded, values)
