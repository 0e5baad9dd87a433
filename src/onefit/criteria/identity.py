"""The guard against kernel matrices near the identity.

Liu, Jiang and Liao (ICML 2014, footnote 2): with too small a bandwidth the kernel matrix is near
the identity, approximations of cross-validation would probably fail, and the candidate is unlikely
to be good; set the criterion to infinity. The paper gives no threshold. Here a matrix is near the
identity if at least half of its rows have

    sum_{j != i} |K_ij| <= 0.01 K_ii,

since the row sum bounds the effect on point i of the other points, if their coefficients are no
larger than its own. It is the median row that decides, so that a few duplicates do not hide the
rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit.gram import as_gram

__all__ = ["near_identity"]

#: off-diagonal part of the median row below which a kernel matrix is near the identity: other
#: points then change a prediction by at most one percent
MAX_OFF_DIAGONAL_SHARE = 1e-2


def near_identity(K: Any) -> str:
    """The reason why ``K`` counts as near the identity, or an empty string; in O(n^2).

    Examples
    --------
    >>> import numpy as np
    >>> near_identity(np.eye(3))
    'the kernel matrix is near the identity (off-diagonal part of the median row 0 of its \
diagonal): its bandwidth is too small to compare points; lower gamma'
    >>> near_identity(np.ones((3, 3)))
    ''
    """
    K = as_gram(K)
    diagonal = np.abs(K.diagonal)
    rest = K.row_sums() - diagonal
    share = float(np.median(rest / np.maximum(diagonal, np.finfo(K.dtype).tiny)))
    if share > MAX_OFF_DIAGONAL_SHARE or not diagonal.any():
        return ""
    return (
        f"the kernel matrix is near the identity (off-diagonal part of the median row {share:.2g} "
        "of its diagonal): its bandwidth is too small to compare points; lower gamma"
    )
