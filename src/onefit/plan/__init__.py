"""What each held-out method will cost, and which one to take.

The operations of a method are counted as calls of a few primitives (``cost.py``), each with a speed
that was measured once on this machine (``rates.py``); the memory they take (``matrices.py``) is
compared with what is really available (``memory.py``), and the whole is printed as a table
(``text.py``). A device has its own speeds (``device_rates.py``, ``device_cost.py``, ``device.py``).
"""

from __future__ import annotations

from onefit.plan.choice import candidates, choose, estimate
from onefit.plan.device import check_device_memory, choose_on_device, explain_on_device
from onefit.plan.device_rates import DeviceRates, calibrate_device
from onefit.plan.matrices import peak_bytes
from onefit.plan.memory import available_memory, check_fit, check_memory, check_method, choose_fit
from onefit.plan.rates import Rates, calibrate
from onefit.plan.text import Explanation, announce, duration, explain
from onefit.plan.workload import Estimate, Workload

__all__ = [
    "DeviceRates",
    "Estimate",
    "Explanation",
    "Rates",
    "Workload",
    "announce",
    "available_memory",
    "calibrate",
    "calibrate_device",
    "candidates",
    "check_device_memory",
    "check_fit",
    "check_memory",
    "check_method",
    "choose",
    "choose_fit",
    "choose_on_device",
    "duration",
    "estimate",
    "explain",
    "explain_on_device",
    "peak_bytes",
]
