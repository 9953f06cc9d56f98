"""Speed as ratios: ours and the peers side by side in one run, minima over interleaved repeats, one
thread.
"""
