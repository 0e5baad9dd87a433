"""Made-up data sets in the place of the papers', and units of work cut down to them."""

from __future__ import annotations

import numpy as np

from onefit_papers import ecml2014, icml2014, ieice2019, ins2016, jmlr2008
from onefit_papers.data import DataSet
from onefit_papers.run import settings

MODULES = {m.NAME: m for m in (icml2014, ecml2014, ins2016, jmlr2008, ieice2019)}


class Made:
    """A loader of made-up sets of 60 rows."""

    def load(self, name):
        rng = np.random.default_rng(7)
        X = rng.standard_normal((60, 3))
        signal = np.sin(2 * X[:, 0]) + X[:, 1]
        y = signal + 0.3 * rng.standard_normal(60)
        labelled = name not in ("bodyfat", "servo", "pyrim")
        return DataSet(name, X, np.where(y > 0, 1.0, -1.0) if labelled else y, "made up")


def values_of(rows, table, variant="main"):
    """The values of a table by column."""
    return {
        r["column"]: r["value"] for r in rows if r["table"] == table and r["variant"] == variant
    }


def unit_of(paper, **wanted):
    """The first unit of the quick settings that has these."""
    units = MODULES[paper].units(settings(paper)["quick"])
    return next(u for u in units if all(u.get(k) == v for k, v in wanted.items()))


class Tall:
    """A loader of made-up sets of 167 rows, as many as servo has."""

    def load(self, name):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((167, 3))
        return DataSet(name, X, np.sin(X[:, 0]) + X[:, 1], "made up")
