"""How fast a device is: seconds of a few primitives, measured once and stored with the host's.

Matrices are so large that a GPU is busy and so small that measuring takes a second; smaller on a
device that is a processor under another name.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from onefit.kernels import Gaussian
from onefit.linalg.device import Device
from onefit.plan import store

__all__ = ["H200", "DeviceRates", "calibrate_device"]

#: sides of the matrices that are timed: those of an eigendecomposition, and of everything else
SIZES = {True: (1024, 4096), False: (64, 256)}
#: a primitive runs so often, the best counts
REPEATS = 3


@dataclass(frozen=True)
class DeviceRates:
    """Speeds of a device.

    Attributes
    ----------
    gemm, cholesky, inverse : float
        Operations a second of a product, a Cholesky factor (n^3 / 3) and a triangular inverse (the
        same).
    eigh, start : float
        Seconds of an eigendecomposition, per n^3 and beside that.
    entry, read : float
        Seconds of an entry of a kernel matrix that is computed, and of one that is read.
    call : float
        Seconds of a call that moves a few numbers to the device and back.
    """

    gemm: float
    cholesky: float
    inverse: float
    eigh: float
    start: float
    entry: float
    read: float
    call: float


#: of one H200 in float64 (benchmarks/gpu.py)
H200 = DeviceRates(55e12, 36e12, 24e12, 7.2e-13, 0.1, 2e-11, 3e-12, 2e-5)


#: what this process has measured or read, by the device's description and the bytes of a number
_known: dict[tuple[str, int], DeviceRates] = {}


def calibrate_device(device: Device, itemsize: int = 8) -> DeviceRates:
    """The rates of a device: remembered, read from disk, or measured."""
    key = device.describe(), itemsize
    if key not in _known:
        _known[key] = _calibrated(*key, device)
    return _known[key]


def _calibrated(name: str, itemsize: int, device: Device) -> DeviceRates:
    known = store.read_device(name, itemsize)
    if known is not None:
        try:
            return DeviceRates(**{key: float(value) for key, value in known.items()})
        except (TypeError, ValueError):
            pass  # written by another version: measured again
    rates = measure(device, np.dtype(f"f{itemsize}"))
    store.write_device(name, itemsize, asdict(rates))
    return rates


def measure(device: Device, dtype: Any) -> DeviceRates:
    """Time every primitive."""
    small, large = SIZES[device.fast]
    random = np.random.default_rng(0)
    X = device.asarray(random.normal(size=(large, 8)).astype(dtype))
    kernel, n3 = Gaussian(0.1), float(large) ** 3

    def spent(action: Callable[[], Any]) -> float:
        return _seconds(action, device)

    entry = spent(lambda: kernel(X)) / large**2
    M = device.add_diagonal(kernel(X), 1.0)
    narrow = device.asarray(random.normal(size=(large, 4)).astype(dtype))
    factor = device.cholesky(device.copy(M))
    wide = spent(lambda: device.eigh(M))
    short = spent(lambda: device.eigh(M[:small, :small]))
    eigh = max(wide - short, 0.1 * wide) / (n3 - float(small) ** 3)
    one = np.ones((1, 1), dtype=dtype)
    return DeviceRates(
        gemm=2.0 * n3 / spent(lambda: device.matmul(M, M)),
        cholesky=n3 / 3.0 / spent(lambda: device.cholesky(device.copy(M))),
        inverse=n3 / 3.0 / spent(lambda: device.triangular_inverse(device.copy(factor))),
        eigh=eigh,
        start=max(0.0, wide - eigh * n3),
        entry=entry,
        read=spent(lambda: device.matmul(M, narrow)) / large**2,
        call=spent(lambda: device.host(device.asarray(one) + 1.0)),
    )


def _seconds(action: Callable[[], Any], device: Device) -> float:
    """The best of a few runs, after one that starts libraries."""
    action()
    spent = []
    for _ in range(REPEATS):
        device.wait()
        start = time.perf_counter()
        action()
        device.wait()
        spent.append(max(time.perf_counter() - start, 1e-9))
    return min(spent)
