"""Criteria: one number a candidate, the smaller the better.

Each criterion is a plain function of a problem and a lambda, and an object that a search takes by
its name. Costs are for one kernel matrix of n rows and L lambdas; k is the number of folds.

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
"gacv"                smoothed hinge         a fit a lambda  Wahba, Lin and Zhang's GACV
"span"                hinges                 a fit a lambda  the span rule of Chapelle et al.
"sv_count"            hinges                 a fit a lambda  part of support vectors
"radius_margin"       squared hinge          a fit and the   R^2 |w|^2 / n, radius over margin
                                             ball a lambda
====================  =====================  ==============  ====================================

The eigenvalue-perturbation criterion "EP" of the papers' tables is not here: none of the papers
defines it, and a formula made up for it would not be theirs.

Sample weights count in every mean; rows of weight zero do not enter. Several targets, or classes
one against the rest, are averaged.
"""

from __future__ import annotations

from onefit.criteria.base import Criterion
from onefit.criteria.bayes import BayesLoo, bayes_loo
from onefit.criteria.crossval import CrossValidation, cross_validation
from onefit.criteria.discrepancy import bifcv_discrepancy, bifcv_lipschitz_bound
from onefit.criteria.gacv import Gacv, gacv
from onefit.criteria.gcv import Gcv, gcv
from onefit.criteria.granularity import Granularity, granularity, granularity_for
from onefit.criteria.hat import CvHat, cv_hat
from onefit.criteria.identity import near_identity
from onefit.criteria.influence import InfluenceLoo, influence_loo
from onefit.criteria.loo import LeaveOneOut, loo
from onefit.criteria.radius_margin import RadiusMargin, radius_margin
from onefit.criteria.span import Span, span
from onefit.criteria.spectrum import HatSpectrum
from onefit.criteria.stability import KernelStability, k_ks, kernel_stability
from onefit.criteria.support import SvCount, sv_count
from onefit.criteria.variance import cv_variance_bound

__all__ = [
    "CRITERIA",
    "BayesLoo",
    "Criterion",
    "CrossValidation",
    "CvHat",
    "Gacv",
    "Gcv",
    "Granularity",
    "HatSpectrum",
    "InfluenceLoo",
    "KernelStability",
    "LeaveOneOut",
    "RadiusMargin",
    "Span",
    "SvCount",
    "bayes_loo",
    "bifcv_discrepancy",
    "bifcv_lipschitz_bound",
    "cross_validation",
    "cv_hat",
    "cv_variance_bound",
    "gacv",
    "gcv",
    "granularity",
    "granularity_for",
    "influence_loo",
    "k_ks",
    "kernel_stability",
    "loo",
    "near_identity",
    "radius_margin",
    "span",
    "sv_count",
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
