"""pymanopt over isomorph: one backend for NumPy, JAX, TensorFlow and PyTorch.

pymanopt has a backend per framework, which each write the gradient and the Hessian product anew.
This one serves all four; which of them computes is chosen by name:

    @function("torch")(manifold)
    def cost(x): ...
"""

from functools import partial

from pymanopt.autodiff import backend_decorator_factory
from pymanopt.autodiff.backends._backend import Backend
from pymanopt.tools import bisect_sequence

import isomorph as iso


class Isomorph(Backend):
    def __init__(self, framework):
        super().__init__(f"isomorph, {framework}")
        self.framework = framework

    @staticmethod
    def is_available():
        return True

    def prepare_function(self, function):
        return lambda *points: iso.to_numpy(function(*self._given(points)))[()]

    def generate_gradient_operator(self, function, num_arguments):
        gradient = iso.grad(function, tuple(range(num_arguments)))
        return lambda *points: self._returned(gradient(*self._given(points)))

    def generate_hessian_operator(self, function, num_arguments):
        def product(*args):
            points, vectors = bisect_sequence(self._given(args))
            return self._returned(iso.hvp(function, tuple(points), tuple(vectors)))

        return product

    def _given(self, points):
        return [iso.convert(x, self.framework) for x in points]

    def _returned(self, arrays):
        found = [iso.to_numpy(x) for x in arrays]
        return found[0] if len(found) == 1 else found


def function(framework):
    """pymanopt's decorator for cost functions of arrays of this framework."""
    return backend_decorator_factory(partial(Isomorph, framework))
