"""What the commands do, without any printing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from sklearn.base import clone

from onefit import plan
from onefit.choose.data_checks import about_notes
from onefit.choose.encode import describe
from onefit.choose.familiar import Familiar, columns_with_gaps
from onefit.choose.fit import fit_recipe, in_time, narrowed
from onefit.choose.options import Options
from onefit.choose.recipe import Recipe, checked_splits, make_recipe
from onefit.choose.stages import plan_stages, show_stages
from onefit.choose.task import as_targets
from onefit.cli.model import Model, Training, make_model, save_model
from onefit.cli.show import progress, waiting
from onefit.cli.standard import Source, check_place
from onefit.cli.summary import check_results_name, summarise, write_results
from onefit.config import config_context
from onefit.folds import Folds
from onefit.report.criteria import compare_criteria
from onefit.search.setup import set_up
from onefit.tables import Table, is_sparse

__all__ = ["JournalOption", "Outputs", "explain_plan", "model_of", "select_model"]

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
class JournalOption:
    """The journal of a selection, and whether an existing one is resumed."""

    path: Path | None = None
    resume: bool = False

    def check(self) -> None:
        """Refuse to resume an existing journal without --resume."""
        if self.path is None:
            if self.resume:
                raise ValueError("--resume needs --journal PATH, the journal to resume")
            return
        if self.path.exists() and not self.resume:
            raise ValueError(
                f"--journal {self.path} exists; continue it with --resume, or remove it"
            )
        if not self.path.is_dir():
            check_place(self.path)
        if self.path.is_file():
            raise ValueError(f"--journal {self.path} is a file, but a journal is a folder")

    @contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """Add to Ctrl-C how the selection is resumed."""
        try:
            yield
        except KeyboardInterrupt as error:
            if self.path is None:
                raise
            message = f"; finished work is in {self.path}, continue with --resume"
            raise KeyboardInterrupt(message) from error


def select_model(
    table: Table,
    options: Options,
    source: Source,
    outputs: Outputs,
    journal: JournalOption | None = None,
    begun: float | None = None,
) -> dict[str, Any]:
    """Select on a table, write the files asked for, and return the summary.

    Parameters
    ----------
    table : Table
    options : Options
    source : Source
        Where the table comes from.
    outputs : Outputs
    journal : JournalOption, default=None
    begun : float, default=None
        When the command began, by :func:`time.monotonic`: reading counts.
    """
    journal = journal or JournalOption()
    journal.check()
    outputs.check()
    deadline = None if options.minutes is None else plan.Deadline(options.minutes, begun)
    start = perf_counter()
    recipe = make_recipe(table, options, told=outputs.report is not None)
    recipe.search.set_params(journal=journal.path)
    with journal.on_interrupt(), config_context(device=options.device):
        recipe = fit_recipe(in_time(narrowed(recipe), deadline), progress)
    seconds = perf_counter() - start
    recipe = _compared(recipe, seconds, journal)
    model = None if outputs.model is None else model_of(recipe, table, source, options)
    n, columns = table.X.shape
    data = {"file": source.name, "rows": n, "columns": columns, "target": table.target}
    data["seed"] = options.seed
    summary = summarise(recipe, data, seconds, recipe.fallback)
    outputs.write(recipe, table, source.name, model)
    return summary


def _compared(recipe: Recipe, seconds: float, journal: JournalOption) -> Recipe:
    """Further criteria, if there is time: they take about as long as the search did."""
    if recipe.compare and recipe.deadline is not None and seconds > recipe.deadline.left:
        names = ", ".join(recipe.compare)
        recipe.reasons.append(f"criteria {names} were not compared: there was no time left")
        return replace(recipe, compare=())
    with journal.on_interrupt(), waiting(f"criteria {', '.join(recipe.compare)}"):
        compare_criteria(recipe.search, recipe.Z, recipe.y, recipe.compare, recipe.weights)
    return recipe


def model_of(recipe: Recipe, table: Table, source: Source, options: Options) -> Model:
    """The winner; fitted to all rows where it was chosen on a sample, if that can be done."""
    about: dict[str, Any] = {"id": table.id, "reading": source.reading}
    search, whole = recipe.search, source.whole
    why = "" if whole is None else _not_all(recipe, whole.X.shape[0])
    if why:
        recipe.reasons.append(f"the model is that of the sample: {why}")
    if whole is None or why:
        best, folds, groups = recipe.model, search.folds_, recipe.groups
        familiar = Familiar.of(best, recipe.encoder, columns_with_gaps(table.X), folds, groups)
        training = Training.of(folds, recipe.y, groups, recipe.weights)
        return make_model(recipe.encoder, best, table, familiar, training, **about)
    n = whole.X.shape[0]
    recipe.reasons.append(f"the model is the winner, fitted again to all {n:,} rows")
    encoder, y = clone(recipe.encoder), as_targets(whole.y, recipe.task)
    Z = encoder.fit_transform(whole.X)
    machine = clone(search.best_estimator_)
    with waiting(f"the winner, on all {n:,} rows"):
        machine.fit(Z, y, sample_weight=whole.weights)
    splits, _, groups, _ = checked_splits(whole, y, recipe.task, options)
    folds = Folds.draw(splits, Z, y, groups)
    familiar = Familiar.of(machine, encoder, columns_with_gaps(whole.X), folds, groups)
    training = Training.of(folds, y, groups, whole.weights)
    return make_model(encoder, machine, whole, familiar, training, **about)


def _not_all(recipe: Recipe, n: int) -> str:
    """Why the winner cannot be fitted to so many rows, if so."""
    if recipe.calibrate is not None:
        return "its probabilities come from held-out rows of the sample"
    late = _no_time(recipe, n)
    if late:
        return f"a fit to all {n:,} rows was left out, {late}"
    if recipe.search.best_estimator_.approximation is not None:
        return ""
    room = plan.available_memory()
    if n > MOST_ROWS or 16.0 * n * n > room:
        return (
            f"a fit to all {n:,} rows takes too much time or memory (--approximation nystrom "
            "needs less)"
        )
    return ""


def _no_time(recipe: Recipe, n: int) -> str:
    """Why there is no time for a fit to so many rows, if so."""
    if recipe.deadline is None:
        return ""
    setup = set_up(recipe.search, recipe.Z, recipe.y, recipe.weights, {"groups": recipe.groups})
    works = [replace(load, n=n) for load in setup.works]
    return recipe.deadline.refuses(max(plan.fit_estimate(one).seconds for one in works))


def explain_plan(table: Table, options: Options) -> dict[str, Any]:
    """The plan of a selection, in words and in numbers."""
    deadline = None if options.minutes is None else plan.Deadline(options.minutes)
    recipe = in_time(make_recipe(table, options), deadline)
    setup = set_up(recipe.search, recipe.Z, recipe.y, recipe.weights, {"groups": recipe.groups})
    stages = plan_stages(recipe, setup, table.X.shape)
    texts = [plan.explain(load, best) for load, best in setup.works.items()]
    return {
        "reasons": recipe.reasons,
        "notes": recipe.notes,
        "candidates": len(setup.candidates),
        "splits": len(setup.folds),
        "plans": [_as_numbers(load, best) for load, best in setup.works.items()],
        "stages": [{"stage": one.name, "when": one.when, "seconds": one.seconds} for one in stages],
        "text": "\n\n".join([*texts, show_stages(stages)]),
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
