"""The device of an array, or of a name.

The namespace comes from array-api-compat, the device from the arrays. PyTorch and CuPy are imported
only if one of their arrays or a device name is given.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from onefit.linalg.device import Device

__all__ = ["device_of", "named_device"]


def device_of(x: Any) -> Device:
    """The device that holds an array."""
    compat, library = _compat(), type(x).__module__.partition(".")[0]
    lib, device = compat.array_namespace(x), compat.device(x)
    if library == "torch":
        from onefit.linalg.torch_arrays import Torch

        return Torch(lib, device)
    if library == "cupy":
        from onefit.linalg.cupy_arrays import CuPy

        return CuPy(lib, device)
    return Device(lib, device)


def named_device(name: Any) -> Device | None:
    """The device meant by ``device="cuda"``: PyTorch's, or CuPy's without it; None for "cpu".

    "torch:cpu" is PyTorch on the processor: the same code without a GPU. A device that does not
    exist is an error.
    """
    if name is None or str(name) == "cpu":
        return None
    if str(name) == "torch:cpu":
        return _torch_on_cpu()
    kind, _, number = str(name).partition(":")
    if kind != "cuda" or not (number == "" or number.isdigit()):
        raise ValueError(
            f"device={name!r} is not known; use 'cuda', 'cuda:0', ..., or 'cpu' for NumPy"
        )
    for attempt in (_cuda_torch, _cuda_cupy):
        found = attempt(int(number or 0))
        if found is not None:
            return found
    raise ValueError(
        f"device={name!r}, but neither PyTorch nor CuPy finds such a CUDA device: install one of "
        "them with CUDA (pip install 'onefit[gpu]'), check nvidia-smi, or leave the device out"
    )


def _torch_on_cpu() -> Device:
    try:
        import torch
    except ImportError as error:
        raise ValueError("device='torch:cpu' needs PyTorch: pip install 'onefit[gpu]'") from error
    return device_of(torch.empty(0))


def _cuda_torch(number: int) -> Device | None:
    try:
        import torch
    except ImportError:
        return None
    if number >= torch.cuda.device_count():
        return None
    return device_of(torch.empty(0, device=f"cuda:{number}"))


def _cuda_cupy(number: int) -> Device | None:
    try:
        import cupy

        if number >= cupy.cuda.runtime.getDeviceCount():
            return None
    except Exception:  # without a driver CuPy raises errors of other classes
        return None
    with cupy.cuda.Device(number):
        return device_of(cupy.empty(0))


def _compat() -> Any:
    try:
        return import_module("array_api_compat")
    except ImportError:
        # scikit-learn contains a copy
        return import_module("sklearn.externals.array_api_compat")
