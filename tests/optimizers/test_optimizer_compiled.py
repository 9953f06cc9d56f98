"""Updates of many arrays, compiled with their first and second derivatives: the rows of
test_gradients.py compile the first derivatives of one array (on JAX all of this).
"""

from functools import partial

import pytest

from . import optimizer_oracles as steps

UPDATES = {
    "optimizer_update": (steps.ours_optimizer, steps.descent),
    "gradient_descent_update": (steps.ours_descent, steps.descent),
    "adam_update": (steps.ours_adam, steps.adam_paper),
    "lars_update": (
        partial(steps.ours_lars, decay_lambda=0.3), partial(steps.lars_paper, decay=0.3),
    ),
    "lamb_update": (
        partial(steps.ours_lamb, decay_lambda=0.3, max_trust_ratio=2.0),
        partial(steps.lamb_paper, decay=0.3, cap=2.0),
    ),
}  # fmt: skip


@pytest.mark.takes("torch compiles C++")
@pytest.mark.parametrize("backend", ["tensorflow", "torch"], indirect=True)
@pytest.mark.parametrize("name", UPDATES)
def test_updates_compile_with_all_derivatives(backend, xp, name):
    update, paper = UPDATES[name]
    steps.check_compiled(backend, xp, update, paper, {"paper": steps.by_paper(paper)})
