"""What the commands do, without any printing."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from onefit import plan
from onefit.cli.encode import as_trained, describe
from onefit.cli.model import Model, load_model, make_model, save_model
from onefit.cli.options import Options
from onefit.cli.recipe import Recipe, make_recipe
from onefit.cli.show import progress, waiting
from onefit.cli.spreadsheet import write_csv
from onefit.cli.summary import check_results_name, summarise, write_results
from onefit.fallback import Fallback, fall_back, measure_whole
from onefit.files import DataError
from onefit.report.criteria import compare_criteria
from onefit.search.announce import announce
from onefit.search.setup import set_up
from onefit.tables import Table, is_sparse, read_features
from onefit.uncertainty import predict_interval

__all__ = [
    "Diary",
    "Outputs",
    "check_level",
    "check_output",
    "explain_plan",
    "predict_rows",
    "predictions",
    "select_model",
    "write_predictions",
]


def check_place(path: Path) -> None:
    """Refuse a file whose folder does not exist, or that is one."""
    if not path.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {str(path.parent)!r} to write {path.name} to")
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; name a file to write")


@dataclass(frozen=True)
class Outputs:
    """Files that a selection writes; None for those it does not.

    Texts that a spreadsheet would take for formulas are marked in CSV files, unless they are kept.
    """

    report: Path | None = None
    model: Path | None = None
    results: Path | None = None
    keep_formulas: bool = False
    command: str | None = None

    def check(self) -> None:
        """Refuse what cannot be written, before any work is done."""
        for path in (self.report, self.model, self.results):
            if path is not None:
                check_place(path)
        if self.results is not None:
            check_results_name(self.results)

    @property
    def written(self) -> dict[str, str]:
        """Names of the files, by what they hold."""
        files = {"report": self.report, "model": self.model, "results": self.results}
        return {what: str(path) for what, path in files.items() if path is not None}

    def write(self, recipe: Recipe, table: Table, source: str) -> None:
        """Write whatever is asked for."""
        search = recipe.search
        if self.results is not None:
            write_results(search, self.results, self.keep_formulas)
        if self.model is not None:
            model = make_model(recipe.encoder, recipe.machine, table, recipe.y)
            save_model(model, self.model)
        if self.report is not None:
            from onefit.report import write_report

            write_report(
                search,
                self.report,
                y=recipe.y,
                title=f"{source}: {table.target}",
                target=table.target,
                rows=None if is_sparse(table.X) else table.X,
                about=about_data(table, recipe),
                command=self.command,
            )


def about_data(table: Table, recipe: Recipe) -> dict[str, str]:
    """What the summary of a report says of the data before anything was done to them."""
    sparse = is_sparse(table.X)
    missing = 0 if sparse else int(table.X.isna().to_numpy().sum())
    return {
        "features": f"{table.X.shape[1]} columns, {recipe.Z.shape[1]} after encoding",
        "missing values": str(missing) if missing else "none",
        "preprocessing": describe(recipe.encoder),
        "task": recipe.task,
    }


@dataclass(frozen=True)
class Diary:
    """The journal of a selection, and whether an old one is to be continued.

    Streamed rows have a folder for a journal, others a file.
    """

    path: Path | None = None
    resume: bool = False
    folder: bool = False

    def check(self) -> None:
        """An old journal is continued only when that is asked for."""
        if self.path is None:
            if self.resume:
                raise ValueError("--resume needs --journal PATH, the journal to go on with")
            return
        check_place(self.path / "journal" if self.folder and self.path.exists() else self.path)
        if self.path.exists() and not self.resume:
            raise ValueError(
                f"--journal {self.path} exists; go on with it by --resume, or remove it"
            )

    @contextmanager
    def told(self) -> Iterator[None]:
        """Whoever interrupts hears that nothing is lost."""
        try:
            yield
        except KeyboardInterrupt as error:
            if self.path is None:
                raise
            message = f"; what is finished is in {self.path}, go on with --resume"
            raise KeyboardInterrupt(message) from error


def select_model(
    table: Table,
    options: Options,
    source: str,
    outputs: Outputs,
    diary: Diary | None = None,
) -> dict[str, Any]:
    """Select on a table, write the files asked for, and return the summary.

    Parameters
    ----------
    table : Table
    options : Options
    source : str
        Name of the data.
    outputs : Outputs
    diary : Diary, default=None
    """
    diary = diary or Diary()
    diary.check()
    outputs.check()
    start = perf_counter()
    recipe = make_recipe(table, options, told=outputs.report is not None)
    recipe.search.set_params(journal=diary.path)
    fallen = _fall_back(recipe, options.minutes)
    announce(recipe.search, recipe.Z, recipe.y)
    with diary.told(), progress(recipe.search):
        recipe.search.fit(recipe.Z, recipe.y)
    if fallen is not None:
        fallen = _measured(recipe, fallen, perf_counter() - start)
    seconds = perf_counter() - start
    with diary.told(), waiting(f"criteria {', '.join(recipe.compare)}"):
        compare_criteria(recipe.search, recipe.Z, recipe.y, recipe.compare)
    n, columns = table.X.shape
    data = {"file": source, "rows": n, "columns": columns, "target": table.target}
    data["seed"] = options.seed
    summary = summarise(recipe, data, seconds, fallen)
    outputs.write(recipe, table, source)
    return summary


def _fall_back(recipe: Recipe, minutes: float | None) -> Fallback | None:
    """Features, if there is too little time for the whole kernel; told at once."""
    if minutes is None:
        return None
    fallen = fall_back(recipe.search, recipe.Z, recipe.y, minutes)
    if fallen is not None:
        recipe.reasons.append(fallen.begun())
        print(fallen.begun(), file=sys.stderr, flush=True)
    return fallen


def _measured(recipe: Recipe, fallen: Fallback, seconds: float) -> Fallback:
    """How far the winner is from the whole kernel, if there is time for that."""
    with waiting("the whole kernel at the setting chosen"):
        left = fallen.allowed - seconds
        whole, reason = measure_whole(recipe.search, recipe.Z, recipe.y, left)
    return replace(fallen, whole=whole, reason=reason)


def explain_plan(table: Table, options: Options) -> dict[str, Any]:
    """The plan of a selection, in words and in numbers."""
    recipe = make_recipe(table, options)
    setup = set_up(recipe.search, recipe.Z, recipe.y, None, {})
    return {
        "reasons": recipe.reasons,
        "candidates": len(setup.candidates),
        "splits": len(setup.folds),
        "plans": [_as_numbers(load, best) for load, best in setup.works.items()],
        "text": "\n\n".join(plan.explain(load, best) for load, best in setup.works.items()),
    }


def _as_numbers(load: plan.Workload, best: plan.Estimate) -> dict[str, Any]:
    return {
        "loss": load.loss,
        "rows": load.n,
        "kernels": load.kernels,
        "lams": load.lams,
        "chosen": best.method,
        "methods": [
            {"method": one.method, "flops": one.flops, "bytes": one.nbytes, "seconds": one.seconds}
            for one in plan.candidates(load)
        ],
    }


def predict_rows(model: Path, data: Path, delimiter: str | None = None, level: float = 0.9) -> Any:
    """Predictions for the rows of a file, as a data frame.

    The column ``prediction``; for amounts the ends of an interval of this level, ``lower`` and
    ``upper``, unless it is 0; for classes a decision value, or a probability where the loss gives
    one, for each.
    """
    found = load_model(model)
    X = as_trained(found.encoder, read_features(data, found.columns, delimiter))
    if X.shape[0] == 0:
        raise DataError(f"{data.name} has no row to predict")
    check_level(found, level)
    return predictions(found, X, level)


def check_level(model: Model, level: float) -> None:
    """Say where there are no intervals because the model holds no training rows."""
    if level > 0 and model.y is None and not is_classifier(model.machine):
        warnings.warn(
            "the model holds landmarks in place of training rows, so there are no intervals; "
            "--level 0 says so",
            stacklevel=2,
        )


def predictions(model: Model, X: Any, level: float) -> Any:
    """Predictions for encoded rows, see :func:`predict_rows`."""
    import pandas as pd

    columns: dict[str, Any] = {"prediction": model.pipeline.predict(X)}
    if is_classifier(model.machine):
        classes = model.machine.classes_
        if hasattr(model.machine, "predict_proba"):
            word, values = "probability", model.pipeline.predict_proba(X)
        else:
            word, values = "decision", model.pipeline.decision_function(X)
            classes = classes[1:] if values.ndim == 1 else classes
        values = np.asarray(values).reshape(X.shape[0], -1)
        columns |= {f"{word}_{one}": values[:, i] for i, one in enumerate(classes)}
    elif level > 0 and model.y is not None:
        machine = model.machine
        Z = model.encoder.transform(X)
        found = predict_interval(machine, machine.X_fit_, model.y, Z, alpha=1.0 - level)
        columns |= {"lower": found.lower, "upper": found.upper}
    return pd.DataFrame(columns)


def check_output(path: Path | None) -> None:
    """Refuse a file that predictions cannot be written to, before any work is done."""
    if path is None:
        return
    if path.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise ValueError(f"--output {path.name} must end in .csv or .parquet")
    check_place(path)


def write_predictions(frame: Any, path: Path, keep_formulas: bool = False) -> None:
    """Write predictions as CSV or Parquet, by the file's name."""
    if path.suffix.lower() == ".csv":
        write_csv(frame, path, keep_formulas)
    else:
        frame.to_parquet(path, index=False)
