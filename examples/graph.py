"""A graph network that learns the energy of clusters of atoms, and their forces as its gradient.

Clusters of four to seven atoms are one graph: messages run along pairs of atoms and are summed at
the receiver by `iso.segment_sum`, energies of atoms are summed per cluster by another. The loss
contains forces, so training differentiates a gradient.

What it stands for: DeePMD-kit sums over neighbours by a branch per framework (`xp_scatter_sum` in
`deepmd/dpmodel/array_api.py`) and takes forces by code per framework (`task_deriv_one` in
`deepmd/pt/model/model/transform_output.py` for torch; `deepmd/jax`, `deepmd/tf` and `deepmd/pd`
have their own).
"""

from __future__ import annotations

import numpy as np
from pictures import BLUE, GREY, Plot
from running import main, numbers

import isomorph as iso


def morse(places):
    """The energy of a cluster of atoms at places [n, 3]: pairs that like the distance 1."""
    xp = iso.namespace(places)
    i, j = np.triu_indices(places.shape[0], 1)
    apart = xp.take(places, i, axis=0) - xp.take(places, j, axis=0)
    r = xp.linalg.vector_norm(apart, axis=-1)
    return xp.sum((1 - xp.exp(-2.0 * (r - 1))) ** 2 - 1)


def clusters(count, seed):
    """One graph of many clusters: places of atoms, the cluster of each atom, pairs of atoms in both
    directions, energies of clusters, forces on atoms. It is the data, so it is made in NumPy.
    """
    rng = np.random.default_rng(seed)
    corners = np.stack(np.meshgrid(*[[0.0, 1.1]] * 3), axis=-1).reshape(8, 3)
    places, cluster, senders, receivers, energies, forces = [], [], [], [], [], []
    atoms = 0
    for number in range(count):
        size = 4 + number % 4
        x = corners[rng.permutation(8)[:size]] + rng.normal(0, 0.1, (size, 3))
        energy, slope = iso.value_and_grad(morse)(x)
        i, j = np.nonzero(~np.eye(size, dtype=bool))
        for parts, part in (
            (places, x), (cluster, np.full(size, number)), (senders, i + atoms),
            (receivers, j + atoms), (energies, [energy]), (forces, -slope),
        ):  # fmt: skip
            parts.append(part)
        atoms += size
    whole = [np.concatenate(p) for p in (places, cluster, senders, receivers, energies, forces)]
    return dict(zip(("places", "cluster", "senders", "receivers", "energies", "forces"), whole))


class Energy(iso.Module):
    """Energies of clusters. It sees distances only, so turning or moving a cluster changes none."""

    def __init__(self, width, centres=12):
        self.centres = iso.State(iso.linspace(0.5, 2.5, centres))
        self.first = iso.Sequential(iso.Linear(centres, width), iso.silu, iso.Linear(width, width))
        self.second = iso.Sequential(
            iso.Linear(2 * width + centres, width), iso.silu, iso.Linear(width, width)
        )
        self.head = iso.Sequential(iso.Linear(2 * width, width), iso.silu, iso.Linear(width, 1))

    def forward(self, places, graph):
        xp = iso.namespace(places)
        senders, receivers, atoms = graph["senders"], graph["receivers"], places.shape[0]
        take = lambda x, atoms: xp.take(x, atoms, axis=0)
        r = xp.linalg.vector_norm(take(places, senders) - take(places, receivers), axis=-1)
        near = xp.exp(-(((r[:, None] - self.centres.value) / 0.2) ** 2) / 2)
        x = iso.segment_sum(self.first(near), receivers, atoms)
        pairs = xp.concat([take(x, senders), take(x, receivers), near], axis=-1)
        y = iso.segment_sum(self.second(pairs), receivers, atoms)
        each = self.head(xp.concat([x, y], axis=-1))[:, 0]
        return iso.segment_sum(each, graph["cluster"], graph["energies"].shape[0])


def forces(model, graph):
    """Energies, and forces by the gradient in the places of all atoms at once."""
    xp = iso.namespace(graph["places"])

    def total(places):
        energies = model(places, graph)
        return xp.sum(energies), energies

    (_, energies), slope = iso.value_and_grad(total, has_aux=True)(graph["places"])
    return energies, -slope


def loss(model, graph):
    energies, pulls = forces(model, graph)
    return iso.mse(energies, graph["energies"]) + iso.mse(pulls, graph["forces"])


def run(backend, quick=False, compiled=True):
    count, width, steps = (4, 8, 5) if quick else (40, 32, 500)
    graph, fresh = (iso.convert(clusters(count, seed), backend) for seed in (0, 1))
    with iso.use_backend(backend, dtype="float64"), iso.use_key(0):
        model = Energy(width)
    rate = iso.optimizers.cosine(0.01, steps)
    step = iso.train_step(loss, iso.optimizers.adam(rate), compiled=compiled)
    state, losses = step.init(model), []
    for _ in range(steps):
        state, value = step(state, graph)
        losses.append(numbers(value))
    energies, pulls = (iso.jit(forces) if compiled else forces)(state.model, fresh)
    off = lambda a, b: float(np.sqrt(np.mean((numbers(a) - numbers(b)) ** 2)))
    found = {"loss": losses[-1], "energy error": off(energies, fresh["energies"])}
    found |= {"force error": off(pulls, fresh["forces"])}
    kept = numbers({"energies": energies, "pulls": pulls, "wanted": fresh["forces"]})
    return {"found": found, "losses": losses, **kept}


def picture(result):
    ends = (-8, 8)
    plot = Plot("Forces in new clusters", ends, ends, "force", "predicted", 420, 420)
    plot.line(ends, ends, GREY, width=1)
    return plot.points(result["wanted"], result["pulls"], BLUE, size=1.5).svg()


if __name__ == "__main__":
    main(__doc__, run, picture, "graph.svg")
