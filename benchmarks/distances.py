"""Seconds to form a Laplace matrix beside a Gaussian one, with Numba and without it.

One process and one thread for each contestant, best of several rounds in turns; the Gaussian's
distances come from a matrix product. Usage: python benchmarks/distances.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROUNDS = 7
SIZES = [(n, d) for n in (2000, 5000) for d in (4, 8, 16, 32, 64)]
RESULT = Path(__file__).parent / "results" / "distances.md"

CODE = """
import sys
if sys.argv[1] == "scipy":
    sys.modules["numba"] = None
import time
import numpy as np
from onefit.kernels import Gaussian, Laplace
kernel = Gaussian(0.01) if sys.argv[1] == "gaussian" else Laplace(0.01)
kernel(np.zeros((200, 2)))
for line in sys.stdin:
    n, d = map(int, line.split())
    X = np.random.default_rng(0).normal(size=(n, d))
    start = time.perf_counter()
    kernel(X)
    print(time.perf_counter() - start, flush=True)
"""
CONTESTANTS = ("gaussian", "numba", "scipy")


def main() -> None:
    worker_plan = {
        name: subprocess.Popen(
            [sys.executable, "-c", CODE, name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name in CONTESTANTS
    }  # fmt: skip
    lines = [
        "# Time of Laplace and Gaussian kernel matrices",
        "",
        f"Milliseconds for the n x n matrix of n rows, one thread, best of {ROUNDS} rounds in "
        "turns (`benchmarks/distances.py`). Ratios are to the Gaussian.",
        "",
        "| n | d | Gaussian | Laplace, Numba | ratio | Laplace, SciPy | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for n, d in SIZES:
        best = dict.fromkeys(CONTESTANTS, float("inf"))
        for _ in range(ROUNDS):
            for name, process in worker_plan.items():
                process.stdin.write(f"{n} {d}\n")
                process.stdin.flush()
                best[name] = min(best[name], float(process.stdout.readline()))
        base = best["gaussian"]
        lines.append(
            f"| {n} | {d} | {1e3 * base:.0f} | {1e3 * best['numba']:.0f} | "
            f"{best['numba'] / base:.2f} | {1e3 * best['scipy']:.0f} | {best['scipy'] / base:.2f} |"
        )
    for process in worker_plan.values():
        process.stdin.close()
        process.wait()
    RESULT.write_text("\n".join(lines) + "\n")
    print(RESULT.read_text())


if __name__ == "__main__":
    main()
