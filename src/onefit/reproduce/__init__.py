"""The five papers' experiments, run again: ``onefit reproduce PAPER``.

A paper is a module that lists its units of work, measures one of them, and writes its part of the
page: :mod:`jmlr2008 <onefit.reproduce.jmlr2008>` and its siblings. What they share lies beside
them: the data sets, the journal that makes a run resumable, the papers' own numbers, claims and
verdicts.
"""

from onefit.reproduce.run import PAPERS, reproduce

__all__ = ["PAPERS", "reproduce"]
