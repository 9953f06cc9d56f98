"""Run one example of autograd until it ends or the time is up: `one_example.py file seconds`.

It counts as running if no error came, and if it ended or took a few gradients. MNIST, which the
examples download, is replaced by made-up images of the same form.
"""

import runpy
import signal
import sys
import types
from pathlib import Path

import numpy as np

path, seconds = Path(sys.argv[1]), int(sys.argv[2])
taken = 0


class TimeIsUp(BaseException):
    pass


def stop(*args):
    raise TimeIsUp


def made_up_mnist():
    """Random images of 28 × 28 pixels with labels from 0 to 9, fewer than MNIST has."""
    draw = np.random.RandomState(0)
    images = [draw.randint(0, 256, (n, 28, 28)).astype(np.uint8) for n in (2000, 300)]
    labels = [draw.randint(0, 10, n).astype(np.uint8) for n in (2000, 300)]
    return images[0], labels[0], images[1], labels[1]


sys.modules["data_mnist"] = types.ModuleType("data_mnist")
sys.modules["data_mnist"].mnist = made_up_mnist
sys.path.insert(0, str(path.parent))
sys.argv = [str(path)]

from autograd import core  # noqa: E402

make_vjp = core.make_vjp


def counted(*args):
    global taken
    taken += 1
    return make_vjp(*args)


core.make_vjp = counted
signal.signal(signal.SIGALRM, stop)
signal.alarm(seconds)
try:
    runpy.run_path(str(path), run_name="__main__")
    end = "it ended"
except TimeIsUp:
    end = f"stopped after {seconds} s"
    if taken < 3:
        sys.exit(f"{path.name}: {end}, with {taken} gradients only")
print(f"\n{end}, {taken} gradients")
