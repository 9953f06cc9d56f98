"""A library that computes the area of a polygon with several engines."""

import math
from fractions import Fraction


def area(points, engine):
    """The signed area of a polygon, computed with the numbers of an engine."""
    number = {"float": float, "fraction": Fraction}[engine]
    xs = [number(x) for x, _ in points]
    ys = [number(y) for _, y in points]
    pairs = zip(xs, ys, xs[1:] + xs[:1], ys[1:] + ys[:1])
    terms = [a * d - b * c for a, b, c, d in pairs]
    return (math.fsum(terms) if engine == "float" else sum(terms)) / 2
