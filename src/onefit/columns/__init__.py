"""How a column reaches its minimiser: fits, Newton's method, and certificates.

A column is one regularised problem: a target, a mask of rows, weights and a ridge
(:mod:`onefit.problem`). Many are solved side by side (:mod:`onefit.columns.newton`), by way of
easier problems where a start is bad (:mod:`onefit.columns.solve`), and certified
(:mod:`onefit.columns.certify`); :mod:`onefit.columns.fit` solves the columns of all rows.
"""
