"""Which packages there are: those under src, and the benchmarks under a name that is theirs alone.
All else stands in pyproject.toml, which cannot find packages of two roots.
"""

from setuptools import find_packages, setup

measured = ["isomorph_benchmarks"]
measured += [f"isomorph_benchmarks.{name}" for name in find_packages("benchmarks")]
setup(packages=[*find_packages("src"), *measured])
