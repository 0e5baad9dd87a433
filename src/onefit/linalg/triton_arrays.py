"""Manhattan distances on a GPU by a Triton kernel (Triton is installed with PyTorch).

A program computes a tile of the matrix. Its sums stay in registers while the columns of the points
are read one after the other, so that each distance is written to memory once. The time is then that
of writing the matrix, as for a matrix product with few columns.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["manhattan"]

#: rows and columns of a tile
TILE_ROWS, TILE_COLUMNS = 64, 64


@triton.jit
def _tile(  # type: ignore[no-untyped-def]
    X, Y, out, n, m, d, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # pragma: no cover - compiled
    """One tile; `X` of shape (d, n) and `Y` of shape (d, m) hold a point in each column."""
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    j = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float64)
    for k in range(d):
        x = tl.load(X + k * n + i, mask=i < n, other=0.0)
        y = tl.load(Y + k * m + j, mask=j < m, other=0.0)
        sums += tl.abs(x[:, None] - y[None, :])
    inside = (i[:, None] < n) & (j[None, :] < m)
    tl.store(out + i[:, None] * m + j[None, :], sums, mask=inside)


def manhattan(X: Any, Y: Any) -> Any:
    """Distances of the rows of `X` and of `Y`, float64 tensors of one GPU."""
    (n, d), m = X.shape, Y.shape[0]
    out = torch.empty((n, m), dtype=torch.float64, device=X.device)
    grid = (triton.cdiv(n, TILE_ROWS), triton.cdiv(m, TILE_COLUMNS))
    if n and m:
        with torch.cuda.device(X.device):
            _tile[grid](
                X.T.contiguous(), Y.T.contiguous(), out, n, m, d,
                ROWS=TILE_ROWS, COLUMNS=TILE_COLUMNS,
            )  # fmt: skip
    return out
