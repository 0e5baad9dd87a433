"""The losses, one number at a time, by the cases of their definitions."""

from __future__ import annotations

import math


def squared(y, u):
    return (y - u) ** 2


def huber(y, u, threshold):
    size = abs(y - u)
    return size**2 if size <= threshold else 2 * threshold * size - threshold**2


def epsilon_quadratic(y, u, epsilon):
    size = abs(y - u)
    return (size - epsilon) ** 2 if size > epsilon else 0.0


def logistic(y, u):
    r = y - u
    return -math.log(4 / (1 + math.exp(-r)) / (1 + math.exp(r)))


def hinge(y, u):
    return max(1 - y * u, 0.0)


def smoothed_hinge(y, u, delta):
    t = y * u
    if t > 1 + delta:
        return 0.0
    if t < 1 - delta:
        return 1 - t
    return (1 + delta - t) ** 2 / (4 * delta)


def squared_hinge(y, u):
    return hinge(y, u) ** 2


def log(y, u):
    return math.log(1 + math.exp(-y * u))


def value(loss, y, u):
    """V(y, u) of a loss object, by its name and parameters alone."""
    parameters = {
        "huber": ("threshold",),
        "epsilon_quadratic": ("epsilon",),
        "smoothed_hinge": ("delta",),
    }.get(loss.name, ())
    return globals()[loss.name](y, u, *(getattr(loss, name) for name in parameters))
