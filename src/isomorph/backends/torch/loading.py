"""Importing torch next to TensorFlow on ARM, where both include the Arm Compute Library.

TensorFlow exposes its copy to every library that is loaded later (RTLD_GLOBAL). Torch's oneDNN
kernels would then call TensorFlow's copy, which has another version, and abort the process
("free(): invalid pointer", at the first larger convolution gradient). If torch is imported here, it
is told to look into its own libraries first. If it was already imported after TensorFlow, it is too
late for that, and oneDNN is turned off in torch.
"""

from __future__ import annotations

import os
import platform
import sys
import warnings
from importlib import import_module

FIRST, SECOND = "tensorflow.python.pywrap_tensorflow", "torch._C"  # these load the libraries


def import_torch() -> None:
    """Import torch, so that its kernels call its own libraries."""
    if sys.platform != "linux" or platform.machine() != "aarch64" or FIRST not in sys.modules:
        return
    if SECOND not in sys.modules:
        flags = sys.getdlopenflags()
        sys.setdlopenflags(flags | os.RTLD_DEEPBIND)
        try:
            import_module("torch")
        finally:
            sys.setdlopenflags(flags)
    elif is_second(list(sys.modules)):
        import_module("torch.backends.mkldnn").set_flags(False)
        warnings.warn(
            "torch was imported after TensorFlow: on this processor (aarch64) its oneDNN kernels "
            "would call TensorFlow's copy of the Arm Compute Library and abort the process. They "
            "are turned off in torch (torch.backends.mkldnn), its own kernels compute instead; "
            "import torch before TensorFlow to keep them",
            RuntimeWarning,
            stacklevel=2,
        )


def is_second(modules: list[str]) -> bool:
    """Whether torch's libraries were loaded after TensorFlow's: modules are listed in the order of
    their imports.
    """
    return modules.index(FIRST) < modules.index(SECOND)


import_torch()
