"""What the commands do, without any printing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from sklearn.base import clone

from onefit import plan
from onefit.choose.data_checks import about_notes
from onefit.choose.encode import describe
from onefit.choose.fit import fit_recipe, in_time
from onefit.choose.options import Options
from onefit.choose.recipe import Recipe, make_recipe
from onefit.choose.task import as_targets
from onefit.cli.model import Model, make_model, save_model
from onefit.cli.show import progress, waiting
from onefit.cli.standard import Source, check_place
from onefit.cli.summary import check_results_name, summarise, write_results
from onefit.estimators import inside
from onefit.report.criteria import compare_criteria
from onefit.search.setup import set_up
from onefit.tables import Table, is_sparse

__all__ = ["Diary", "Outputs", "explain_plan", "model_of", "select_model"]

#: rows that a winner with the whole kernel is fitted to after a choice on a sample
MOST_ROWS = 30_000


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

    def write(self, recipe: Recipe, table: Table, source: str, model: Model | None) -> None:
        """Write whatever is asked for."""
        search = recipe.search
        if self.results is not None:
            write_results(search, self.results, self.keep_formulas)
        if self.model is not None and model is not None:
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
    } | about_notes(recipe.notes)


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
    source: Source,
    outputs: Outputs,
    diary: Diary | None = None,
) -> dict[str, Any]:
    """Select on a table, write the files asked for, and return the summary.

    Parameters
    ----------
    table : Table
    options : Options
    source : Source
        Where the table comes from.
    outputs : Outputs
    diary : Diary, default=None
    """
    diary = diary or Diary()
    diary.check()
    outputs.check()
    start = perf_counter()
    recipe = make_recipe(table, options, told=outputs.report is not None)
    recipe.search.set_params(journal=diary.path)
    with diary.told():
        recipe = fit_recipe(in_time(recipe, options.minutes), progress)
    seconds = perf_counter() - start
    with diary.told(), waiting(f"criteria {', '.join(recipe.compare)}"):
        compare_criteria(recipe.search, recipe.Z, recipe.y, recipe.compare, recipe.weights)
    model = None if outputs.model is None else model_of(recipe, table, source)
    n, columns = table.X.shape
    data = {"file": source.name, "rows": n, "columns": columns, "target": table.target}
    data["seed"] = options.seed
    summary = summarise(recipe, data, seconds, recipe.fallback)
    outputs.write(recipe, table, source.name, model)
    return summary


def model_of(recipe: Recipe, table: Table, source: Source) -> Model:
    """The winner; fitted to all rows where it was chosen on a sample, if that can be done."""
    about: dict[str, Any] = {"id": table.id, "reading": source.reading}
    whole = source.whole
    if whole is None:
        return make_model(recipe.encoder, recipe.search.best_estimator_, table, recipe.y, **about)
    n = whole.X.shape[0]
    why = _not_all(recipe, n)
    if why:
        recipe.reasons.append(f"the model is that of the sample: {why}")
        return make_model(recipe.encoder, recipe.search.best_estimator_, table, recipe.y, **about)
    recipe.reasons.append(f"the model is the winner, fitted again to all {n:,} rows")
    encoder, y = clone(recipe.encoder), as_targets(whole.y, recipe.task)
    Z = encoder.fit_transform(whole.X)
    machine = clone(recipe.search.best_estimator_)
    with waiting(f"the winner, on all {n:,} rows"):
        machine.fit(Z, y, sample_weight=whole.weights)
    return make_model(encoder, machine, whole, y, **about)


def _not_all(recipe: Recipe, n: int) -> str:
    """Why the winner cannot be fitted to so many rows, if so."""
    if recipe.calibrate is not None:
        return "its probabilities come from held-out rows of the sample"
    if inside.is_approximate(recipe.search.best_estimator_):
        return ""
    room = plan.available_memory()
    if n > MOST_ROWS or 16.0 * n * n > room:
        return (
            f"a fit to all {n:,} rows takes too much time or memory (--approximation nystrom "
            "needs less)"
        )
    return ""


def explain_plan(table: Table, options: Options) -> dict[str, Any]:
    """The plan of a selection, in words and in numbers."""
    recipe = make_recipe(table, options)
    setup = set_up(recipe.search, recipe.Z, recipe.y, recipe.weights, {"groups": recipe.groups})
    return {
        "reasons": recipe.reasons,
        "notes": recipe.notes,
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
