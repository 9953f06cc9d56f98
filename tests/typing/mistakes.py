"""Programs with mistakes: a type checker must see each that is marked, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

import isomorph as iso

x = np.ones((8, 3))
other: str = input()


def loss(x: np.ndarray, scale: float = 1.0) -> np.ndarray:
    xp = iso.namespace(x)
    xp.tanhh(x)  # error
    xp.linalg.svdd(x)  # error
    xp.fft.ftt(x)  # error
    xp.tanh("a")  # error
    xp.tanh()  # error
    xp.sum(x, axes=0)  # error
    xp.fft.fft(x, norm="orto")  # error
    xp.add(x, "a")  # error
    xp.zeros("a")  # error
    return scale * xp.sum(x)


def unannotated(x):
    xp = iso.namespace(x)
    return xp.summ(x)  # error


def annotated(x: Any) -> Any:
    return iso.namespace(x).summ(x)  # error


iso.jit(loss)("a")  # error
iso.jit(loss)(x, scal=2.0)  # error
iso.jit(loss, statik=1)  # error
iso.jit(3)  # error
iso.grad(loss)("a")  # error
iso.grad(loss)()  # error
iso.grad(loss)(x, 1.0, 2.0)  # error
iso.grad(loss, "x")  # error
iso.grad(loss)(x).nothing  # error
iso.value_and_grad(loss)(x, scale="a")  # error
iso.vmap(loss)(x, "a")  # error
iso.checkpoint(loss)(1)  # error
iso.jit(iso.vmap(iso.grad(loss)))("a")  # error
iso.hessian(loss)("a")  # error

iso.Linear("a", 2)  # error
iso.Linear(2)  # error
iso.Linear(2, 3, bas=False)  # error
iso.Linear(2, 3, key="a")  # error
iso.Linaer(2, 3)  # error
iso.nonexistent  # error
iso.Linear(2, 3)("a")  # error
iso.Linear(2, 3)()  # error
iso.Linear(2, 3).wheight  # error
iso.Linear(2, 3)(x, x)  # error
iso.Linear(2, 3).eval().trian()  # error
iso.Conv2D(3, 8, 3, data_format="NHCW")  # error
iso.Conv2D(3, 8, 3, padding="SAMME")  # error
iso.Conv2DTranspose(3, 8)  # error
iso.BatchNorm(3, data_format="channels_last")  # error
iso.Activation("gleu")  # error
iso.Sequential(iso.Linear(2, 3), 3)  # error
iso.initializers.glorot("unifrom")  # error

iso.relu("a")  # error
iso.relu(x, alpha=1)  # error
iso.gelu(x, approximate="tanh")  # error
iso.softmax([1.0])  # error
iso.conv2d(x, x, 1, "SAMME")  # error
iso.conv2d(x, x, 1, "SAME", data_format="NHCW")  # error
iso.conv1d(x, x, 1, "SAME", data_format="NHWC")  # error
iso.max_pool(x, "a")  # error
iso.layer_norm(x, weight="a")  # error
iso.mse(x, x, reduction="meen")  # error
iso.mse(x, x, reduction="counted").valeu  # error
iso.cross_entropy(x)  # error
iso.at("a")  # error
iso.at(x)[1:].sett(0.0)  # error

iso.use_backend("nunpy")  # error
iso.use_backend(other)  # error
iso.use_backend("jax", dtype="flaot32")  # error
iso.convert(x, "tensroflow")  # error
iso.zeros(3, backend="pytorch")  # error
iso.zeros(3, dtype="float31")  # error
iso.random.key(0, backend="nunpy")  # error
iso.random.normal("a")  # error
iso.random.nromal(x)  # error
iso.load("a", backend="nunpy")  # error
iso.optimizers.adam()  # error
iso.optimizers.adamm(1e-3)  # error
iso.fit(x, x, 3, iso.optimizers.adam(1e-3))  # error
iso.chain(3)  # error


class Net(iso.Module):
    def __init__(self) -> None:
        self.hidden = iso.Linear(3, 4)

    def forward(self, x: np.ndarray, scale: float = 1.0) -> np.ndarray:
        return self.hiden(x)  # error


net = Net()
net("a")  # error
net()  # error
net(x, scal=1.0)  # error
net(x, 1.0, 2.0)  # error
net.hidden.eval("a")  # error
net.head  # error
net(x).nothing  # error
Net(3)  # error
iso.jit(net)("a")  # error
