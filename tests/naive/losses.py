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


def epsilon_insensitive(y, u, epsilon, delta):
    excess = abs(y - u) - epsilon
    if excess <= 0:
        return 0.0
    return excess**2 / (2 * delta) if excess <= delta else excess - delta / 2


def tube(y, u, epsilon):
    """The loss of the SVR, as libsvm has it."""
    return max(abs(y - u) - epsilon, 0.0)


def pinball(y, u, level):
    return level * (y - u) if y > u else (1 - level) * (u - y)


def quantile(y, u, level, delta):
    r = y - u
    if r > level * delta:
        return level * r - level**2 * delta / 2
    if r < (level - 1) * delta:
        return (level - 1) * r - (1 - level) ** 2 * delta / 2
    return r**2 / (2 * delta)


def expectile(y, u, level):
    return 2 * (level if y > u else 1 - level) * (y - u) ** 2


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
        "epsilon_insensitive": ("epsilon", "delta"),
        "quantile": ("level", "delta"),
        "expectile": ("level",),
        "smoothed_hinge": ("delta",),
    }.get(loss.name, ())
    return globals()[loss.name](y, u, *(getattr(loss, name) for name in parameters))
