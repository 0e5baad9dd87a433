"""One pass on 1, 2 and 4 worker processes of a Dask cluster on this machine: strong scaling.

The pass adds up the moments of five folds of Nystrom features over a folder of Parquet files, which
is what a search with the squared loss needs of its rows. Contestants: this process alone, and local
clusters of worker processes with one thread each. A round runs every contestant once, in turn; the
best round counts. Beside the time: bytes of the columns that are read, and bytes that workers send
to anyone during a pass, by Dask's own count (states to each other and to the client).

More workers than cores cannot be faster; they show what the extra processes cost.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import _harness as harness
import numpy as np
from _harness import Row

FOLDS, COLUMNS, FILES, GROUP = 5, 20, 16, 12_500


def write(folder: Path, n: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(0)
    for i in range(FILES):
        X = random.normal(size=(n // FILES, COLUMNS))
        names = {f"x{j}": X[:, j] for j in range(COLUMNS)}
        table = pa.table(names | {"y": np.sin(X[:, 0]) + X[:, 1]})
        pq.write_table(table, folder / f"part-{i:02d}.parquet", row_group_size=GROUP)


def bytes_read(folder: Path) -> int:
    """Of the columns on disk."""
    import pyarrow.parquet as pq

    total = 0
    for path in folder.iterdir():
        about = pq.ParquetFile(path).metadata
        groups = (about.row_group(i) for i in range(about.num_row_groups))
        total += sum(
            g.column(j).total_compressed_size for g in groups for j in range(g.num_columns)
        )
    return total


def accumulator(source, features: int):
    from onefit.features.maps import nystrom_map
    from onefit.features.moments import Centre, MomentSums
    from onefit.kernels import Gaussian
    from onefit.rows import run
    from onefit.rows.sample import RowSampler

    drawn = run(RowSampler(features, 0), source)
    phi = nystrom_map(Gaussian(1.0 / COLUMNS), drawn.X)
    return MomentSums(phi, Centre.of(phi, drawn.X[:256], drawn.Y[:256]))


def sent(client) -> int:
    def count(dask_worker) -> int:
        return int(dask_worker.transfer_outgoing_bytes_total)

    return sum(client.run(count).values())


def measure(source, gram, clients: dict[str, object], rounds: int) -> dict[str, Row]:
    from onefit.rows import run

    found: dict[str, Row] = {}
    total = None
    for _ in range(rounds):
        for name, client in clients.items():
            before = 0 if client is None else sent(client)
            start = time.perf_counter()
            moments = run(gram, source, client=client, n_jobs=1)
            seconds = time.perf_counter() - start
            moved = 0 if client is None else sent(client) - before
            G = moments.without(()).G
            total = G if total is None else total
            off = float(np.abs(G - total).max() / np.abs(total).max())
            row = found.setdefault(name, {"seconds": seconds, "moved": moved, "off": off})
            row["seconds"] = min(seconds, row["seconds"])
            row["moved"], row["off"] = max(moved, row["moved"]), max(off, row["off"])
            print(f"{name}: {seconds:.2f} s", flush=True)
    return found


def compare(flags) -> tuple[str, list[Row]]:
    from distributed import Client, LocalCluster

    from onefit.rows import open_rows, run

    n, features = (16_000, 50) if flags.quick else (400_000, 300)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, n)
        source = open_rows(folder, "y", cv=FOLDS)
        gram = accumulator(source, features)
        options = {"threads_per_worker": 1, "dashboard_address": None}
        clusters = {
            f"{k} worker{'s' * (k > 1)}": LocalCluster(n_workers=k, **options) for k in (1, 2, 4)
        }
        clients = {name: Client(one, set_as_default=False) for name, one in clusters.items()}
        try:
            warm = open_rows(folder / "part-00.parquet", "y", cv=FOLDS)
            for client in clients.values():
                run(gram, warm, client=client)
            found = measure(source, gram, {"this process": None, **clients}, flags.rounds)
        finally:
            for client in clients.values():
                client.close()
            for cluster in clusters.values():
                cluster.close()
        read = bytes_read(folder)
    one = found["1 worker"]["seconds"]
    state = 8 * FOLDS * features**2
    rows = [
        {
            "where": name,
            "seconds": row["seconds"],
            "1 worker / this": one / row["seconds"],
            "read MB": read / 1e6,
            "moved MB": row["moved"] / 1e6,
            "moved / state": row["moved"] / state,
            "largest relative difference": row["off"],
        }
        for name, row in found.items()
    ]
    about = (
        f"{n:,} rows, {COLUMNS} columns, {features} Nystrom features, {FOLDS} folds; "
        f"{FILES} files with row groups of {GROUP:,} rows. A state has {state / 1e6:.3g} MB. One "
        "BLAS thread per process, best of the rounds."
    )
    return f"{about}\n\n{harness.table(rows)}", rows


def main() -> None:
    flags = harness.parser(__doc__, rounds=3).parse_args()
    text, rows = compare(flags)
    print(text)
    name = harness.stem("scaling_dask", flags.quick)
    harness.write_csv(flags.out, name, rows)
    harness.write_report(
        flags.out, name, "One pass over files on a Dask cluster", [("Results", text)]
    )


if __name__ == "__main__":
    main()
