"""onefit on one CUDA device, float64: python benchmarks/gpu.py --part NAME.

rows       10 folds x 20 lams by method "iterative", n = 100,000 (8 columns, gamma 0.1, lam from
           1e-2 to 1e-6), once per kernel; K is held where it fits (--tiles: never)
profile    where the time of one of these goes
million    the same with n = 1,000,000 and 4 lams (1e-2 to 1e-3), Gaussian kernel
search     15 gammas x 20 lams x 10 folds at n = 20,000, KernelSearchCV on device "cuda"
block      exact 10-fold of one (kernel, lambda) at n = 20,000, against kernel matrix, Cholesky
           factor, triangular inverse and blocks in bare PyTorch, interleaved
himalaya   KernelRidgeCV of himalaya (backend torch_cuda) on 20 lams x 10 folds at n = 10,000
agreement  results of the device against NumPy's at n = 2,000
losses     the same for every loss, by method "exact", with the seconds of both
cupy       the same for arrays of CuPy
svm        method "exact" with the smoothed hinge on 20,000 rows of a9a, three gammas x 15 lams x 10
           folds, extrapolated to 15 gammas; the rows come from build/a9a_20000.npz, which
           --prepare makes of the file in ONEFIT_DATA_DIR
features   approximation="nystrom" with 2,000 landmarks: 10 folds x 20 lams of the squared loss on
           1,000,000 rows of 20 columns, 10 folds x 3 lams of the log loss and the smoothed hinge on
           100,000; and what the device finds on fewer rows against NumPy (--clocks: where the time
           goes)
criteria   every criterion, and a lam for each target: the device against NumPy
side_by_side  kernels in two processes that share the device, against one process and NumPy
stream     5 folds x 20 lams with features of 1,000,000 rows x 20 columns in a file, chunk by chunk
           on the device; rows a second there and on the host, agreement of both at n = 20,000, one
           and two worker processes on the device where Dask is installed
curve      rows against seconds, 10 folds x 10 lams: GPU, CPU, GridSearchCV (gpu_picture.py draws)

Data are on the device before a clock starts, and every clock stops after a synchronisation. Peak
memory is PyTorch's (max_memory_allocated). Each part prints a Markdown table; ``--save`` writes it
to benchmarks/results/gpu_PART.md too. ``--quick --device cpu`` tries the script without a device.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from _gpu import HERE, KERNELS, folds_of, problem_of, problem_of_host, sample, table, timed
from _gpu_features import criteria, features, side_by_side
from _gpu_losses import cupy, losses, prepare, svm
from _gpu_profile import curve, profile
from _gpu_stream import stream


def fits(n: int, there) -> bool:
    """Whether a kernel matrix leaves room for the rest; what PyTorch keeps for later is free."""
    from onefit.linalg import arrays_of

    return 8.0 * n * n <= 0.7 * arrays_of(there).room()


def iterate(name: str, n: int, lams, device: str, tol: float = 1e-6, hold: bool = True) -> dict:
    from onefit import kernels
    from onefit.heldout import Iterative

    X, y = sample(n)
    there, folds = torch.tensor(X, device=device), folds_of(n)
    kernel = getattr(kernels, name)(0.1)
    hold = hold and fits(n, there)

    def run():
        return Iterative(tol=tol).prepare(problem_of(kernel, there, y, hold), folds).predict(lams)

    seconds, peak, path = timed(run)
    return {
        "kernel": name,
        "n": f"{n:,}",
        "K": "held" if hold else "by tiles",
        "problems": 10 * len(lams),
        "seconds": f"{seconds:.2f}",
        "steps, most": int(path.steps.max()),
        "largest bound / scale": f"{np.nanmax(path.bounds) / y.std():.1e}",
        "exact": f"{100 * path.exact.mean():.0f} %",
        "peak GiB": f"{peak:.1f}",
    }


def rows(flags) -> list[dict]:
    small = 2000 if flags.quick else 100_000
    iterate("Gaussian", 2000, np.logspace(-2, -3, 2), flags.device)  # libraries start
    found = []
    for name in flags.kernels:
        if time.perf_counter() - flags.start > flags.budget:
            found.append({"kernel": name, "n": f"{small:,}", "seconds": "not begun: time is up"})
            continue
        lams = np.logspace(-2, -6, 20)
        found.append(iterate(name, small, lams, flags.device, hold=flags.hold))
        print(found[-1], flush=True)
    return found


def million(flags) -> list[dict]:
    n = 4000 if flags.quick else 1_000_000
    iterate("Gaussian", 2000, np.logspace(-2, -3, 2), flags.device)
    return [iterate("Gaussian", n, np.logspace(-2, -3, 4), flags.device, flags.tol)]


def search(flags) -> list[dict]:
    from sklearn.model_selection import KFold

    from onefit import KernelRegressor, KernelSearchCV
    from onefit.config import config_context

    n = 600 if flags.quick else 20_000
    X, y = sample(n)
    grid = {"gamma": np.logspace(-3, 0.5, 15), "lam": np.logspace(-6, 0, 20)}

    def make(rows: int):
        splitter = KFold(10, shuffle=True, random_state=0)
        chosen = KernelSearchCV(KernelRegressor(), grid, cv=splitter, method=flags.method)
        data = X[:rows] if flags.named else torch.tensor(X[:rows])

        def run():
            with config_context(device=flags.named):
                return chosen.fit(data, y[:rows])

        return run

    make(500)()
    seconds, peak, chosen = timed(make(n))
    bounds = chosen.cv_results_
    return [
        {
            "n": f"{n:,}",
            "candidates x folds": "300 x 10",
            "method": ", ".join(sorted({one.method for one in chosen.plan_})),
            "seconds": f"{seconds:.2f}",
            "exact": f"{100 * np.mean(bounds['exact']):.0f} %",
            "best": str({k: f"{v:.2g}" for k, v in chosen.best_params_.items()}),
            "peak GiB": f"{peak:.1f}",
        }
    ]


def bare(X, y, folds, gamma: float, ridge: float):
    """Kernel matrix, Cholesky factor, triangular inverse by halves and blocks: nothing else."""

    def invert(L, out):
        m = L.shape[0]
        if m <= 512:
            eye = torch.eye(m, dtype=L.dtype, device=L.device)
            out.copy_(torch.linalg.solve_triangular(L, eye, upper=False))
            return
        h = m // 2
        invert(L[:h, :h], out[:h, :h])
        invert(L[h:, h:], out[h:, h:])
        out[h:, :h] = -(out[h:, h:] @ (L[h:, :h] @ out[:h, :h]))

    squares = (X * X).sum(1)
    K = torch.addmm(squares[:, None] + squares[None], X, X.T, alpha=-2.0).mul_(-gamma).exp_()
    K.diagonal().add_(ridge)
    L = torch.linalg.cholesky(K)
    W = torch.zeros_like(L)
    invert(L, W)
    alpha = W.T @ (W @ y[:, None])
    missed = []
    for test in folds:
        columns = W[:, test]
        missed.append(torch.linalg.solve(columns.T @ columns, alpha[test]))
    return missed


def block(flags) -> list[dict]:
    from onefit.heldout import Block
    from onefit.kernels import Gaussian

    n = 2000 if flags.quick else 20_000
    X, y = sample(n)
    folds, lam = folds_of(n), 1e-4
    there, target = torch.tensor(X, device=flags.device), torch.tensor(y, device=flags.device)
    tests = [torch.tensor(test, device=flags.device) for test in folds.test]

    def ours():
        problem = problem_of(Gaussian(0.1), there, y, True)
        return Block().prepare(problem, folds).predict(np.array([lam]))

    def plain():
        return bare(there, target, tests, 0.1, lam * 0.9 * n)

    ours(), plain()
    times = {"onefit": [], "bare": []}
    peaks = {}
    for _ in range(2 if flags.quick else 5):
        for name, action in (("onefit", ours), ("bare", plain)):
            seconds, peaks[name], _ = timed(action)
            times[name].append(seconds)
    best = {name: min(values) for name, values in times.items()}
    labels = {
        "onefit": "onefit, method 'block' (intercept, bounds)",
        "bare": "kernel, Cholesky, triangular inverse, blocks",
    }
    return [
        {
            "n": f"{n:,}",
            "what": labels[name],
            "seconds": f"{best[name]:.3f}",
            "times bare": f"{best[name] / best['bare']:.2f}",
            "peak GiB": f"{peaks[name]:.1f}",
        }
        for name in best
    ]


def himalaya(flags) -> list[dict]:
    try:
        from himalaya.backend import set_backend
        from himalaya.kernel_ridge import KernelRidgeCV
    except ImportError:
        return [{"what": "himalaya is not installed: pip install himalaya"}]
    from sklearn.model_selection import KFold

    n = 1000 if flags.quick else 10_000
    X, y = sample(n)
    lams = np.logspace(-6, 0, 20)
    splits = KFold(10, shuffle=True, random_state=0)
    set_backend("torch_cuda" if flags.device == "cuda" else "torch", on_error="raise")
    there, target = torch.tensor(X, device=flags.device), torch.tensor(y, device=flags.device)

    def theirs():
        model = KernelRidgeCV(
            alphas=lams * 0.9 * n, kernel="rbf", kernel_params={"gamma": 0.1}, cv=splits
        )
        return model.fit(there, target)

    def ours(method: str):
        from onefit import KernelRegressor, KernelSearchCV

        machine = KernelRegressor(gamma=0.1, fit_intercept=False)
        found = KernelSearchCV(
            machine, {"lam": lams}, cv=splits, method=method, scoring="neg_mean_squared_error"
        )
        return found.fit(there, target)

    contestants = {
        "himalaya KernelRidgeCV": theirs,
        "onefit, iterative": lambda: ours("iterative"),
        "onefit, auto": lambda: ours("auto"),
    }
    best = dict.fromkeys(contestants, (np.inf, 0.0, None))
    for turn in range(3):
        for name, action in contestants.items():
            one = timed(action)
            if turn and one[0] < best[name][0]:  # the first turn starts libraries
                best[name] = one
    found = []
    for name, (seconds, peak, model) in best.items():
        lam = getattr(model, "best_params_", {}).get("lam")
        lam = float(model.best_alphas_[0]) / (0.9 * n) if lam is None else lam
        found.append(
            {
                "what": name,
                "n": f"{n:,}",
                "seconds": f"{seconds:.2f}",
                "himalaya takes": f"{best['himalaya KernelRidgeCV'][0] / seconds:.1f} times",
                "lam chosen": f"{lam:.2g}",
                "peak GiB": f"{peak:.1f}",
            }
        )
    return found


def agreement(flags) -> list[dict]:
    from onefit import kernels
    from onefit.heldout import Block, Eigen, Iterative

    n = 500 if flags.quick else 2000
    X, y = sample(n)
    there, folds = torch.tensor(X, device=flags.device), folds_of(n)
    lams, found = np.logspace(-5, -1, 5), []
    methods = {"block": Block(), "eigen": Eigen(), "iterative": Iterative(tol=1e-9)}
    for name in KERNELS:
        kernel = getattr(kernels, name)(0.1)
        on_host = Block().prepare(problem_of_host(kernel, X, y), folds).predict(lams)
        for label, method in methods.items():
            seconds, peak, path = timed(
                lambda kernel=kernel, method=method: method.prepare(
                    problem_of(kernel, there, y, True), folds
                ).predict(lams)
            )
            gap = np.abs(path.values - on_host.values).max() / y.std()
            bound = (path.bounds.max() + on_host.bounds.max()) / y.std()
            found.append(
                {
                    "kernel": name,
                    "method": label,
                    "largest difference / scale": f"{gap:.1e}",
                    "bounds together": f"{bound:.1e}",
                    "within 1e-8": "yes" if gap <= 1e-8 else "no",
                    "within bounds": "yes" if gap <= bound else "NO",
                    "seconds": f"{seconds:.2f}",
                    "peak GiB": f"{peak:.2f}",
                }
            )
    return found


PARTS = {
    "rows": (rows, "100,000 rows, five kernels"),
    "million": (million, "the whole kernel of a million rows"),
    "search": (search, "a search of 20,000 rows"),
    "block": (block, "exact ten-fold of one candidate"),
    "himalaya": (himalaya, "himalaya on the same device"),
    "agreement": (agreement, "agreement with the host"),
    "losses": (losses, "agreement of every loss"),
    "cupy": (cupy, "arrays of CuPy"),
    "svm": (svm, "a support vector machine"),
    "profile": (profile, "where the time goes"),
    "stream": (stream, "rows streamed from a file"),
    "curve": (curve, "seconds by rows"),
    "features": (features, "features of a million rows"),
    "criteria": (criteria, "criteria"),
    "side_by_side": (side_by_side, "two processes on one card"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS)
    parser.add_argument("--prepare", action="store_true", help="write the file of part svm")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the script")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--method", default="auto", help="of part search")
    parser.add_argument("--tol", type=float, default=1e-6, help="of part million")
    parser.add_argument("--kernels", nargs="*", default=list(KERNELS), help="of part rows")
    parser.add_argument("--tiles", dest="hold", action="store_false", help="of rows and profile")
    parser.add_argument("--rows", type=int, default=20_000, help="of part svm")
    parser.add_argument("--delta", type=float, default=0.1, help="of part svm, the smoothing")
    parser.add_argument("--who", nargs="*", default=["GPU", "CPU", "GridSearchCV"], help="of curve")
    parser.add_argument(
        "--clocks", action="store_true", help="of svm and features: where the time goes"
    )
    parser.add_argument("--budget", type=float, default=200.0, help="seconds, then nothing begins")
    parser.add_argument(
        "--prices", nargs=2, type=float, metavar=("M3", "ENTRY"),
        help="of rows and profile: a small eigendecomposition in m^3, an entry of a tile, both in "
        "operations of a product; systems/low_rank.py has 200 and 1000",
    )  # fmt: skip
    parser.add_argument("--save", action="store_true")
    flags = parser.parse_args()
    if flags.prepare:
        prepare()
    if flags.part is None:
        return
    flags.start, flags.named = time.perf_counter(), None if flags.device == "cpu" else flags.device
    if flags.prices:
        from onefit.inverse.low_rank import PRICES

        decomposition, entry = flags.prices
        PRICES[False] = PRICES[False]._replace(decomposition=decomposition, entry=entry)
    run, title = PARTS[flags.part]
    found = run(flags)
    where = torch.cuda.get_device_name() if flags.device != "cpu" else "CPU"
    text = f"{where}, PyTorch {torch.__version__}, float64\n\n{table(found)}\n"
    print(text)
    if flags.save:
        path = HERE / "results" / f"gpu_{flags.part}.md"
        path.write_text(f"# GPU: {title}\n\n{text}", encoding="utf-8")


if __name__ == "__main__":
    main()
