"""The types are NumPy's."""

from numpy import *  # noqa: F403
from numpy import fft as fft
from numpy import linalg as linalg
from numpy import random as random
