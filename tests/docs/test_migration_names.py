"""The migration pages: every name on the right-hand side of a table exists, and every expression
there that needs nothing else than the samples below runs, on NumPy.
"""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import isomorph as iso

PAGES = Path(__file__).parents[2] / "docs/migrate"
# How many names, and expressions that run, a page has at least: a change of its format that hides
# them from this test is noticed.
LEAST = {"ivy": (80, 40), "keras": (80, 50), "autograd": (15, 9), "eagerpy": (45, 40)}


def right_sides(name):
    """The code in the last cells of the tables."""
    rows = re.findall(r"^\|(.*)\|$", (PAGES / f"{name}.md").read_text(), re.M)
    cells = [re.split(r"(?<!\\)\|", row)[-1] for row in rows]
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]


def dotted(node):
    """A chain of attributes as a list of names; None for anything else."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else None


def parsed(code):
    """The expression; None for a statement, a keyword or words."""
    try:
        return ast.parse(code, mode="eval")
    except SyntaxError:
        return None


def samples(folder):
    x = np.array([[0.5, -1.0, 2.0], [1.0, 0.25, -0.5], [0.1, 0.2, 0.3]], np.float32)
    with iso.use_key(0):
        net = iso.Linear(3, 2)
    iso.save(folder / "net", net)
    return {
        "iso": iso, "xp": iso.namespace(x), "x": x, "w": np.ones((3, 3), np.float32),
        "b": np.zeros(3, np.float32), "n": np.array([0, 2, 1]), "i": np.array([0, 2]),
        "s": np.eye(3, dtype=np.float32) * 2, "z": x[0].astype(np.complex64),
        "f": lambda x: np.sum(x**2), "pair": lambda x: (np.sum(x**2), "aux"), "net": net,
        "rule": lambda saved, g: g * 2 * saved[0], "key": iso.random.key(0),
        "path": folder / "net", "float": float,
    }  # fmt: skip


@pytest.mark.parametrize("page", LEAST)
def test_every_name_exists_and_runs(page, tmp_path):
    given = samples(tmp_path)
    names = runs = 0
    for code in right_sides(page):
        tree = parsed(code)
        if tree is None:
            continue
        for node in ast.walk(tree):
            chain = dotted(node)
            if chain and chain[0] in ("iso", "xp", "net"):
                found = given[chain[0]]
                for name in chain[1:]:
                    assert hasattr(found, name), f"{page}: {code}: there is no {'.'.join(chain)}"
                    found = getattr(found, name)
                names += 1
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if isinstance(tree.body, ast.Call) and used <= given.keys():
            with np.errstate(all="ignore"):  # samples below 0 in logarithms and roots
                eval(compile(tree, f"{page}: {code}", "eval"), dict(given))
            runs += 1
    assert (names, runs) >= LEAST[page]
    assert runs >= LEAST[page][1]
