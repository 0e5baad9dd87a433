"""The five papers' experiments, run again: ``onefit-papers PAPER``.

A paper is a module that lists its units of work, measures one of them, and writes its part of the
page: :mod:`jmlr2008 <onefit_papers.jmlr2008>` and its siblings; verdicts on its claims are in a
module of their own (``jmlr2008_verdicts``). What they share lies beside them: the data sets, the
journal that makes a run resumable, the papers' own numbers, variants of what they leave open, the
count of cells that agree.
"""

from onefit_papers.run import PAPERS, reproduce

__all__ = ["PAPERS", "reproduce"]
