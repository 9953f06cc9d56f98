"""Speed as ratios: isomorph and its peers are measured side by side in one run. Times are minima
over interleaved repeats, with one thread.
"""
