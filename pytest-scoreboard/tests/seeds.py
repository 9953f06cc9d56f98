"""A folder of seed tables: two suites, five tests on four backends, 20 cells, two of them red;
three greens on numpy known to be hollow.
"""

from tabulate import tabulate

COLUMNS = ("numpy", "jax", "tensorflow", "torch")
RED = {("test_a", "jax"): "https://x.y/runs/1", ("test_d", "torch"): "https://x.y/runs/2"}
INDEX = """
note = "tables from elsewhere"

[suites]
"First suite" = "first.md"
"Second suite" = "second.md"

[[hollow]]
backend = "numpy"
reason = "the test returns before its first assertion"
suite = "Second suite"
tests = ["test_d", "test_e"]

[[hollow]]
backend = "numpy"
reason = "nothing was looked at"
suite = "First suite"
tests = ["test_b"]
"""


def folder_of(path):
    """The folder `path`, with an index and two tables."""
    path.mkdir()
    (path / "index.toml").write_text(INDEX)
    for name, tests in (("first.md", "abc"), ("second.md", "de")):
        rows = [[f"test_{test}", *(badge(f"test_{test}", b) for b in COLUMNS)] for test in tests]
        (path / name).write_text(tabulate(rows, ["", *COLUMNS], tablefmt="pipe"))
    return path


def badge(test, backend):
    link = RED.get((test, backend), "https://x.y/runs/")
    label = "failure-red" if (test, backend) in RED else "success-success"
    return (
        f'<a href="{link}" rel="noopener noreferrer" target="_blank">'
        f"<img src=https://img.shields.io/badge/-{label}></a>"
    )
