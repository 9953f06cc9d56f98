"""One engine per framework: its own transport, launchers and collectives. Each module has a
function `join(process, timeout, devices)` that returns a `World`.
"""
