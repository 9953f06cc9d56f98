"""The import order of frameworks does not matter. TensorFlow and torch both bring Arm libraries,
and torch once called TensorFlow's and aborted the process. Each order runs in its own process; the
computation is the same on every processor. `make test` runs the two orders in which
`backends/torch/loading.py` acts: TensorFlow comes first, then isomorph or the user imports torch.
"""

import os
import platform
import subprocess
import sys

import pytest
from frameworks import MISSING, NOT_INSTALLED, ours

loading = ours("torch.loading")

# The first larger gradient of a torch convolution, which calls a kernel of each kind.
CONVOLVE = """
import numpy as np
import isomorph as iso
from isomorph.core.dispatch import load
load("tensorflow"), load("torch")
import tensorflow as tf
import torch
rng = np.random.default_rng(0)
image, filters = rng.normal(size=(50, 4, 4, 16)), rng.normal(size=(3, 3, 16, 32))
image, filters = image.astype(np.float32), filters.astype(np.float32)
def loss(filters, image):
    return iso.namespace(filters).sum(iso.conv2d(image, filters, 1, "SAME") ** 2)
found = []
for name in ("tensorflow", "torch"):
    found.append(iso.to_numpy(iso.grad(loss)(*iso.convert((filters, image), name))))
g, x, w = torch.randn(50, 32, 4, 4), torch.randn(50, 16, 4, 4), torch.randn(32, 16, 3, 3)
outs = torch.ops.aten.convolution_backward(
    g, x, w, [32], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]
)
wide = torch.ops.aten.convolution_backward(
    *(t.double() for t in (g, x, w)), [32], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True] * 3
)
off = max(float((a.double() - b).abs().max()) for a, b in zip(outs, wide))
size = abs(found[0]).max()
print(abs(found[0] - found[1]).max() / size < 1e-5, off < 1e-3, torch.backends.mkldnn.enabled)
"""
ORDERS = {
    "ours": "",
    "tensorflow, then ours": "import tensorflow",
    "torch, tensorflow": "import torch; import tensorflow",
    "tensorflow, torch": "import tensorflow; import torch",
}


@pytest.mark.takes("another process, which imports two frameworks")
@pytest.mark.skipif("tensorflow" in NOT_INSTALLED, reason=MISSING.format("tensorflow"))
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("backend", ["torch"])
def test_convolutions_are_right_in_every_order_of_imports(backend, order):
    late = order == "tensorflow, torch" and sys.platform == "linux"
    late = late and platform.machine() == "aarch64"
    done = subprocess.run(
        [sys.executable, "-c", ORDERS[order] + CONVOLVE],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["True", "True", str(not late)]
    assert ("import torch before TensorFlow" in done.stderr) == late


@pytest.mark.parametrize("backend", ["torch"])
def test_the_order_of_imports_is_the_order_of_modules(backend):
    assert loading.is_second([loading.FIRST, "numpy", loading.SECOND])
    assert not loading.is_second([loading.SECOND, loading.FIRST])
