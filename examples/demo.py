"""One function, written once: its value, gradient and a row of its Hessian on every backend that is
installed.
"""

import isomorph as iso


def energy(x):
    """Neighbours pull at each other, and each is pulled to the origin."""
    xp = iso.namespace(x)
    return xp.sum((x[1:] - x[:-1]) ** 2) + xp.sum(xp.tanh(x) ** 2) / 2


def hessian_row(x, i):
    return iso.grad(lambda x: iso.grad(energy)(x)[i])(x)


def show(values):
    return "  ".join(f"{v:+.6f}" for v in iso.to_numpy(values))


def main():
    points = [0.5, -1.0, 0.25, 2.0]
    print("energy(x) = sum((x[1:] - x[:-1])²) + sum(tanh(x)²) / 2   at x =", points, "\n")
    for name, found in iso.backends().items():
        if not found.installed:
            print(f"{name:<11} not installed: pip install 'isomorph[{name}]'\n")
            continue
        with iso.use_backend(name, dtype="float32"):
            x = iso.asarray(points)
        value, gradient = iso.value_and_grad(energy)(x)
        print(
            f"{name:<11} value       {float(value):+.6f}   "
            f"({type(value).__module__}.{type(value).__name__})"
        )
        print(f"{'':<11} gradient    {show(gradient)}")
        print(f"{'':<11} Hessian[1]  {show(hessian_row(x, 1))}\n")


if __name__ == "__main__":
    main()
