"""The rules by which a machine is chosen, the same for :func:`onefit.select` and the command line.

Each file has one rule: :mod:`~onefit.choose.task`, :mod:`~onefit.choose.encode`,
:mod:`~onefit.choose.metric`, :mod:`~onefit.choose.splits`, :mod:`~onefit.choose.grid`,
:mod:`~onefit.choose.class_weight` and :mod:`~onefit.choose.outliers`;
:mod:`~onefit.choose.data_checks` looks for data that make scores too good.
:mod:`~onefit.choose.recipe` applies them in turn, and :mod:`~onefit.choose.fit` runs the search
that comes out.
"""
