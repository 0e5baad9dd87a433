"""A finished search as one self-contained HTML file, and as a few lines for a notebook.

The file has no script, and makes no request to any server.

The page goes from what everybody wants to know to what specialists want to know: how good the
choice is, what the data look like, which columns matter, the candidates, and, folded, criteria,
plan, exactness and how to run it again.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from onefit import _version
from onefit._format import cell, decimals, number, percent, shorten
from onefit.diagnostics import influence
from onefit.report import figures
from onefit.report.facts import Facts
from onefit.report.figures import as_svg
from onefit.report.words import (
    MAX_RANKED,
    KnownTargets,
    Listing,
    choice,
    comparison,
    exactness,
    expected,
    headline,
    merit,
    ranking,
    rivals,
    spent,
)

Array = NDArray[Any]

__all__ = ["as_html", "write_report"]

#: candidates in the folded table
MAX_LISTED = 500
#: heat maps, and columns of the data
MAX_FAMILIES, MAX_DESCRIBED_COLUMNS = 4, 100
#: rows to check, columns beside them, and rows up to which their influence is computed
MAX_CHECKED, MAX_BESIDE, MAX_INFLUENCE_ROWS = 10, 6, 1500
#: share of distinct values from which a column of whole numbers is one of ids; a column has
#: thousands separators if its largest number has this size, so that years have none
MIN_DISTINCT_IDS, MIN_SEPARATED = 0.9, 10_000
#: points of a reliability curve, and classes that have one
CALIBRATION_BINS, MAX_CURVES = 10, 6
#: a larger surface is left out of a notebook
MAX_CELLS = 400
#: the colours of figures, whatever the theme of the notebook
NOTEBOOK_COLOURS = "--ink:currentColor;--grid:#8888;--blue:#3b7dd8;--orange:#d97706;--red:#dc2626"
PACKAGES = ("numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Drawing:
    """A figure of the page: SVG, and what it shows in words."""

    svg: str = field(repr=False)
    alt: str


def write_report(
    search: Any,
    path: str | Path,
    *,
    title: str = "Model selection",
    target: str = "target",
    rows: Any = None,
    about: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    reasons: Sequence[str] = (),
    command: str | None = None,
    calibrated: Any = None,
    further: Sequence[Any] = (),
) -> Path:
    """Write the report of a fitted search as one HTML file.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted, with a winner. Criteria that :func:`compare_criteria` added are compared.
    path : str or Path
    title, target : str
        Names of the data and of the target.
    rows : DataFrame of n rows, default=None
        The features before they are scaled and encoded. The report then describes the columns,
        counts gaps and copies, and shows unusual rows by index and values. Numbers and dates that
        are written as text become such by :meth:`onefit.prepare.TablePreparer.typed`.
    about : dict of str, default=None
        Further facts about the data: preprocessing, task, ...
    notes, reasons : sequences of str, default=()
        What a user should know about the data, and why settings were chosen.
    command : str, default=None
        The command that repeats the search.
    calibrated : CalibratedKernelClassifier, default=None
        The calibrated winner, for the reliability of its probabilities.
    further : sequence, default=()
        Further results: a :class:`onefit.permutation.PermutationTest`, a
        :class:`onefit.learning.LearningCurve`, or other objects with a ``sentence`` and a method
        ``draw(axis)``.

    Returns
    -------
    Path
    """
    import jinja2

    facts = Facts(search)
    if rows is not None and not hasattr(rows, "iloc"):
        raise TypeError(f"rows must be a pandas DataFrame, got {type(rows).__name__}")
    truth = KnownTargets.of(facts, calibrated)
    n = None if truth is None else truth.n
    if rows is not None and n is not None and len(rows) != n:
        raise ValueError(
            f"rows has {len(rows)} rows, and the search was fitted to {n}; pass the rows of the fit"
        )
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = files("onefit.report").joinpath("page.html").read_text(encoding="utf-8")
    page = environment.from_string(template).render(
        title=title,
        merit=merit(facts, truth, target),
        expected=expected(facts),
        chosen=choice(search),
        warning=facts.verdict,
        compared=_compared(facts, truth, target),
        data=_data(facts, truth, rows, n) | dict(about or {}),
        notes=[_sentence(one) for one in notes],
        reasons=[_sentence(one) for one in reasons],
        columns=_columns(rows),
        checked=_checked(facts, truth, rows, target),
        relevance=_relevance(facts),
        candidates=_candidates(facts),
        further=_further(further),
        rivals=rivals(facts),
        criteria=comparison(facts),
        plan=_plan(facts),
        again=_again(facts, command),
        made=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )
    path = Path(path)
    path.write_text(page, encoding="utf-8", errors="replace")
    return path


def _further(results: Sequence[Any]) -> list[Drawing]:
    """Figures of results, which their sentences describe."""
    return [
        Drawing(as_svg(one.draw, name=f"further{place}"), _sentence(one.sentence))
        for place, one in enumerate(results)
    ]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _compared(facts: Facts, truth: KnownTargets | None, target: str) -> list[Drawing | Listing]:
    """Held-out values beside the truth: a scatter for each target, or how labels are confused."""
    if truth is None:
        return []
    if facts.is_classification:
        return _labels(truth)
    if len(truth.levels) > 1:
        curve = [("quantiles", np.array(truth.levels), truth.below)]
        alt = "Share of held-out rows below each predicted quantile, against its level."
        svg = as_svg(figures.draw_reliability, curve, "share", name="levels")
        return [Drawing(svg, alt)]
    found: list[Drawing | Listing] = []
    columns = truth.held.reshape(truth.rows.size, -1)
    targets = np.broadcast_to(truth.y.reshape(truth.rows.size, -1), columns.shape)
    for place, (y, held) in enumerate(zip(targets.T, columns.T, strict=True)):
        name = target if truth.held.ndim == 1 else f"{target} {place + 1}"
        line = "the dashed line marks right predictions"
        if truth.levels:
            line = f"{percent(truth.below[0])} of the rows are below the line"
        alt = (
            f"{name} against its held-out prediction for {y.size:,} rows, each by a model fitted "
            f"without the row; {line}."
        )
        svg = as_svg(figures.draw_heldout, y, held, name, name=f"heldout{place}")
        found.append(Drawing(svg, alt))
    return found


def _labels(truth: KnownTargets) -> list[Drawing | Listing]:
    classes = np.unique(truth.y)
    counts = confusion_matrix(truth.y, truth.held, labels=classes)
    right = int(np.trace(counts))
    alt = (
        f"Confusion matrix: {right:,} of {truth.y.size:,} rows get the right label from a model "
        "that was fitted without them."
    )
    names = [str(one) for one in classes]
    found: list[Drawing | Listing] = [
        Drawing(as_svg(figures.draw_confusion, counts, names, name="confusion"), alt)
    ]
    if truth.proba is not None:
        frequent = np.argsort(-counts.sum(axis=1), kind="stable")[:MAX_CURVES]
        curves = []
        for k in [1] if len(classes) == 2 else frequent:
            observed, predicted = calibration_curve(
                truth.y == classes[k], truth.proba[:, k], n_bins=CALIBRATION_BINS,
                strategy="quantile",
            )  # fmt: skip
            curves.append((names[k], predicted, observed))
        svg = as_svg(figures.draw_reliability, curves, "probability", name="reliability")
        alt = (
            "Reliability: how often a class occurred, against its predicted probability, in tenths "
            "of the held-out rows. Below the dashed line, probabilities are too high."
        )
        found.append(Drawing(svg, alt))
    scores = precision_recall_fscore_support(truth.y, truth.held, labels=classes, zero_division=0.0)
    rows = [
        [name, *(percent(v) for v in values[:2]), number(values[2]), f"{int(values[3]):,}"]
        for name, *values in zip(names, *scores, strict=True)
    ]
    head = ["class", "precision", "recall", "F1", "rows"]
    return [*found, Listing("Class by class", head, rows, folded=True)]


def _data(facts: Facts, truth: KnownTargets | None, rows: Any, n: int | None) -> dict[str, str]:
    """Size, gaps and copies."""
    found = {} if n is None else {"rows": f"{n:,}"}
    if rows is not None:
        gaps = rows.isna().to_numpy()
        found["columns"] = f"{rows.shape[1]:,}"
        found["missing values"] = "none" if not gaps.any() else (
            f"{int(gaps.sum()):,} ({percent(gaps.mean())} of all cells); columns with gaps: "
            f"{int(gaps.any(axis=0).sum()):,}, rows with gaps: {int(gaps.any(axis=1).sum()):,}"
        )  # fmt: skip
        try:
            copies = int(rows.duplicated().sum())
        except TypeError:  # cells that have no hash
            copies = int(rows.astype(str).duplicated().sum())
        found["copies"] = "none" if copies == 0 else f"{copies:,} rows equal an earlier row"
    else:
        features = getattr(facts.search, "n_features_in_", None)
        found |= {} if features is None else {"columns": f"{features:,}"}
    if truth is not None and truth.weight is not None:
        ends = " to ".join(number(float(end)) for end in (truth.weight.min(), truth.weight.max()))
        found["weights"] = f"{ends}; scores and shares are by weight, other counts are of rows"
    if truth is not None and not facts.is_classification and truth.y.ndim == 1:
        low, middle, high = (number(float(one), 4) for one in np.quantile(truth.y, (0, 0.5, 1)))
        found["target"] = f"{low} to {high}, median {middle}"
    return found


def _columns(rows: Any) -> Listing | None:
    """Type, gaps, distinct values and range of each column."""
    if rows is None:
        return None
    found = []
    for place in range(min(rows.shape[1], MAX_DESCRIBED_COLUMNS)):
        column = rows.iloc[:, place]
        known = column.dropna()
        if known.dtype.kind in "fiuM" and len(known):
            kind = "date" if known.dtype.kind == "M" else "number"
            distinct = known.nunique()
            values = " to ".join(cell(end, _is_plain(known)) for end in (known.min(), known.max()))
        else:
            kind = "yes or no" if known.dtype.kind == "b" else "text"
            most = known.astype(str).value_counts().index
            distinct, values = len(most), ", ".join(shorten(one) for one in most[:3])
        missing = percent(1.0 - len(known) / max(len(column), 1))
        found.append([str(rows.columns[place]), kind, missing, f"{distinct:,}", values])
    head = ["column", "type", "missing", "distinct", "range, or most frequent"]
    return Listing("Columns", head, found, folded=True)


def _checked(facts: Facts, truth: KnownTargets | None, rows: Any, target: str) -> Listing | None:
    """The rows with most influence on the predictions, or else with the largest errors."""
    if truth is None or truth.held.ndim > 1:
        return None
    pull, what = _influence(facts, truth), "influence"
    if pull is None and facts.is_classification:
        return None
    if pull is None:
        pull, what = truth.missed, "error"
    top = np.argsort(-pull, kind="stable")[:MAX_CHECKED]
    names = range(truth.n) if rows is None else rows.index
    beside = range(0 if rows is None else min(rows.shape[1], MAX_BESIDE))
    columns = [(j, _is_plain(rows.iloc[:, j])) for j in beside]
    plain_y = _is_plain(truth.y)
    held = [cell(one, plain_y) for one in truth.held[top]]
    if not facts.is_classification:
        held = decimals(truth.held[top])
    measured = zip(top, held, decimals(pull[top], 3), strict=True)
    found = [
        [str(names[truth.rows[i]]).removesuffix(" 00:00:00"), cell(truth.y[i], plain_y), own, size,
         *(cell(rows.iloc[truth.rows[i], j], plain) for j, plain in columns)]
        for i, own, size in measured
    ]  # fmt: skip
    index = getattr(names, "name", None) or ("row" if rows is not None else "row, from 0")
    head = [str(index), shorten(target), "held-out prediction", what]
    return Listing(
        f"Rows with the largest {what}",
        [*head, *(str(rows.columns[j]) for j in beside)],
        found,
    )


def _is_plain(column: Any) -> bool:
    """Whether numbers of a column are written without separators: ids, and all below 10,000."""
    values = np.asarray(column)
    if values.dtype.kind in "iu" and np.unique(values).size >= MIN_DISTINCT_IDS * values.size:
        return True  # names of the rows; a few may be copies
    if values.dtype.kind not in "iuf":
        return False
    return bool(np.fmax.reduce(np.abs(values), initial=0.0) < MIN_SEPARATED)


def _influence(facts: Facts, truth: KnownTargets) -> Array | None:
    """Root mean square change of all predictions when a row counts twice."""
    model, n, s = facts.model, truth.n, facts.search.heldout_.sample_weight
    if s is not None and not np.all(np.asarray(s) > 0.0):
        return None
    if n > MAX_INFLUENCE_ROWS or not hasattr(model, "X_fit_") or truth.rows.size < n:
        return None
    if hasattr(facts.search, "best_lam_") or hasattr(facts.search, "stack_") or truth.levels:
        return None
    pull = influence(model, model.X_fit_, truth.y, sample_weight=s).reshape(n, n, -1)
    shares = np.full(n, 1.0 / n) if s is None else np.asarray(s) / np.sum(s)
    return np.asarray(np.sqrt(np.square(pull).mean(axis=(1, 2))) * shares)


def _relevance(facts: Facts) -> list[Drawing | Listing]:
    """The columns that matter, if :func:`onefit.relevance` was called."""
    found = getattr(facts.search, "relevance_", None)
    if found is None:
        return []
    top = found.order[: figures.MAX_PLOTTED_COLUMNS]
    rows = [
        [str(found.names[f]), percent(found.values[f]),
         f"{percent(found.low[f])} to {percent(found.high[f])}"]
        for f in top
    ]  # fmt: skip
    size = (5.0, 1.0 + 0.25 * top.size)
    svg = as_svg(figures.draw_relevance, found, top, name="relevance", size=size)
    alt = f"Relevance of {top.size} columns; {found.names[top[0]]} has the largest."
    return [Drawing(svg, alt), Listing("Relevance", ["column", "relevance", "range"], rows)]


def _candidates(facts: Facts) -> list[Drawing | Listing]:
    """The best candidates, heat maps of the score, and its curve."""
    found: list[Drawing | Listing] = [ranking(facts)]
    for place, family in enumerate(facts.families[:MAX_FAMILIES]):
        scores = facts.scores[family.index[family.index >= 0]]
        if not np.isfinite(scores).any():
            continue
        if min(family.index.shape) > 1:
            svg = as_svg(figures.draw_surface, facts, family, name=f"surface{place}")
            low, high = sorted(facts.scale(np.array([np.nanmin(scores), np.nanmax(scores)])))
            alt = (
                f"{family.name}: {facts.scale.label} over gamma and lam, from {number(low)} to "
                f"{number(high)}. Bright is good; SE is the standard error of the best score."
            )
            found.append(Drawing(svg, alt))
        if place == 0 or min(family.index.shape) == 1:
            svg = as_svg(figures.draw_curve, facts, family, name=f"curve{place}")
            where = " at the best gamma" if len(family.gammas) > 1 else ""
            alt = f"{family.name}: {facts.scale.label} over lam{where}."
            found.append(Drawing(svg, alt))
    if facts.scores.size > MAX_RANKED:
        found.append(replace(ranking(facts, MAX_LISTED), folded=True))
    return found


def _plan(facts: Facts) -> list[str | Listing]:
    """Exactness of the held-out values, time, and the method of each kernel."""
    counts = Counter(
        (type(one.kernel).__name__, one.method, one.lams, one.estimate)
        for one in facts.search.plan_
    )
    rows = []
    for (kernel, method, lams, cost), count in counts.items():
        work = ["–", "–"] if cost is None else [f"{cost.flops:.1e}", number(cost.nbytes / 2**20, 2)]
        rows.append([kernel, str(count), str(lams), method, *work])
    head = ["kernel", "number", "lams each", "method", "flops, all kernels", "MiB"]
    found = [f"{exactness(facts)}.", f"{spent(facts)}."]
    return [*found, Listing("Plan", head, rows)] if rows else [*found]


def _again(facts: Facts, command: str | None) -> list[tuple[str, str]]:
    """The command or the call, the splits with their seed, and the versions."""
    search = facts.search
    splits, grid = repr(search.cv), repr(search.param_grid)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return [
        *([] if command is None else [("command", command)]),
        ("estimator", repr(search.estimator)),
        ("grid", grid if len(grid) < 2000 else f"{facts.scores.size:,} candidates"),
        ("splits", splits if len(splits) < 200 else "given one by one"),
        ("scoring", f"{search.scoring}, aggregate {search.aggregate!r}"),
        ("versions", f"onefit {_version.__version__}, {versions}, Python "
                     f"{platform.python_version()}"),
    ]  # fmt: skip


def as_html(search: Any, further: Sequence[str] = ()) -> str:
    """Headline, further lines, and the surface of the winner's family, or its curve over lam."""
    facts = Facts(search)
    names = " over ".join(escape(type(one).__name__) for one in (search, search.estimator))
    parts = [f"<p><strong>{names}, fitted</strong></p>"]
    parts += [f"<p>{escape(line)}</p>" for line in [*headline(facts), *further]]
    return f'<div style="max-width:34rem;{NOTEBOOK_COLOURS}">{"".join(parts)}{_drawn(facts)}</div>'


def _drawn(facts: Facts) -> str:
    """Empty without matplotlib."""
    family = facts.families[0]
    if family.index.size > MAX_CELLS:
        return ""
    draw = figures.draw_surface if min(family.index.shape) > 1 else figures.draw_curve
    try:
        return as_svg(draw, facts, family, name="notebook")
    except ModuleNotFoundError:
        return ""
