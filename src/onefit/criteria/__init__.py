"""Criteria: one number per candidate, the smaller the better.

A criterion is an object: call it on an estimator, X and y, or pass it, or its name, to a search as
``criterion=``. Costs are for one kernel matrix of n rows and L lambdas, k folds.

====================  =====================  ==============  ====================================
name                  losses                 cost            what it is
====================  =====================  ==============  ====================================
"cv"                  any                    the method's    the cross-validated score itself
"loo"                 any                    n^3 + L n^2     exact leave-one-out (squared loss;
                                             (squared)       others: the method "exact")
"cv_hat"              squared                n^3 + L n^2     residuals over 1 - H_ii, JMLR eq. 22
"gcv"                 squared                n^3 + L n^2     residuals over 1 - mean H_ii
"influence_loo"       any                    n^3 + L n^2     C_IF^k of JMLR definition 8, robust
                                             (squared),
                                             L n^3
"kernel_stability"    any                    CV + n^2        CV + (eta / n) max ||K - K^i||, ECML
"bayes_loo"           squared                n^3 + L n^2     leave-one-out with a prior on the
                                                             kernel's parameters
"gacv"                smoothed hinge         L fits          Wahba, Lin and Zhang's GACV
"span"                hinges                 L fits          the span rule of Chapelle et al.
"sv_count"            hinges                 L fits          share of support vectors
"radius_margin"       squared hinge          L fits, L       R^2 |w|^2 / n, radius over margin
                                             balls
====================  =====================  ==============  ====================================

The eigenvalue-perturbation criterion "EP" of the papers' tables is not included: none of the papers
defines it.

Means over rows are weighted by sample weights; rows of weight zero are left out. Several targets,
or classes one against the rest, are averaged.
"""

from __future__ import annotations

from onefit.criteria.base import Criterion
from onefit.criteria.bayes import BayesLoo
from onefit.criteria.crossval import CrossValidation
from onefit.criteria.gacv import Gacv
from onefit.criteria.gcv import Gcv
from onefit.criteria.hat import CvHat
from onefit.criteria.identity import near_identity
from onefit.criteria.influence import InfluenceLoo
from onefit.criteria.loo import LeaveOneOut
from onefit.criteria.radius_margin import RadiusMargin
from onefit.criteria.span import Span
from onefit.criteria.spectrum import HatSpectrum
from onefit.criteria.stability import KernelStability, kernel_stability
from onefit.criteria.support import SvCount

__all__ = [
    "CRITERIA",
    "BayesLoo",
    "Criterion",
    "CrossValidation",
    "CvHat",
    "Gacv",
    "Gcv",
    "HatSpectrum",
    "InfluenceLoo",
    "KernelStability",
    "LeaveOneOut",
    "RadiusMargin",
    "Span",
    "SvCount",
    "kernel_stability",
    "near_identity",
]

#: name -> criterion; "cv", the cross-validated score itself, needs none
CRITERIA: dict[str, Criterion | None] = {"cv": None} | {
    criterion.name: criterion
    for criterion in (
        LeaveOneOut(),
        CvHat(),
        Gcv(),
        InfluenceLoo(),
        KernelStability(),
        BayesLoo(),
        Gacv(),
        Span(),
        SvCount(),
        RadiusMargin(),
    )
}
