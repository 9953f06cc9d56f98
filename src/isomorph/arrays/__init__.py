"""Functions of arrays that the namespace lacks, with NumPy's meaning on every backend: order
statistics, sums by index, distances and the like, by topic.
"""
