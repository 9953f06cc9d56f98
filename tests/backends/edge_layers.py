"""Edge inputs of isomorph's own functions: activations, losses, norms, pools, embeddings.

Activations and their derivatives are compared with their limits, worked out in float64.
"""

import math

import numpy as np
from edge_cases import INF, NAN, Case, specials

import isomorph as iso
from examples import FUNCTIONS, may
from oracles import name_of


def call(name, *args, **kw):
    return lambda xp, *arrays: getattr(iso, name)(*arrays, *args, **kw)


def case(name, edge, inputs, *args, values=None, slopes=None, raises=None, each=False, **kw):
    func = call(name, *args, **kw)
    return Case(f"iso.{name}", edge, func, inputs, values, slopes, raises=raises, elementwise=each)


# Activations: function and derivative of one finite number, and both limits at -inf and inf.


def phi(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


def bell(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) if abs(x) < 40 else 0.0


def logistic(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def tanh_gelu(x):
    return 0.5 * x * (1 + math.tanh(_inner(x)))


def tanh_gelu_slope(x):
    x = max(min(x, 50.0), -50.0)
    t = math.tanh(_inner(x))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * math.sqrt(2 / math.pi) * (
        1 + 3 * 0.044715 * x * x
    )


def _inner(x):
    x = max(min(x, 50.0), -50.0)
    return math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)


def mish_slope(x):
    t = math.tanh(softplus(x))
    return t + min(x, 1e3) * (1 - t * t) * logistic(x) if abs(x) < 1e3 else t


ACTIVATIONS = {
    # name: (function, derivative, its values at -inf and inf, the derivative there, options)
    "relu": (lambda x: max(x, 0.0), lambda x: float(x > 0), (0, INF), (0, 1), {}),
    "leaky_relu": (
        lambda x: x if x > 0 else 0.01 * x, lambda x: 1.0 if x > 0 else 0.01,
        (-INF, INF), (0.01, 1), {},
    ),
    "elu": (
        lambda x: x if x > 0 else math.expm1(x), lambda x: 1.0 if x > 0 else math.exp(x),
        (-1, INF), (0, 1), {},
    ),
    "gelu": (
        lambda x: x * phi(x), lambda x: phi(x) + (x * bell(x) if bell(x) else 0.0),
        (-0.0, INF), (0, 1), {},
    ),
    "gelu, approximate": (tanh_gelu, tanh_gelu_slope, (-0.0, INF), (0, 1), {"approximate": True}),
    "silu": (
        lambda x: x * logistic(x),
        lambda x: logistic(x) * (1 + (x * logistic(-x) if abs(x) < 700 else 0.0)),
        (-0.0, INF), (0, 1), {},
    ),
    "softplus": (softplus, logistic, (0, INF), (0, 1), {}),
    "mish": (lambda x: x * math.tanh(softplus(x)), mish_slope, (-0.0, INF), (0, 1), {}),
    "hardswish": (
        lambda x: x * min(max(x + 3, 0) / 6, 1.0),
        lambda x: 0.0 if x <= -3 else 1.0 if x >= 3 else (2 * x + 3) / 6,
        (0, INF), (0, 1), {},
    ),
    "sigmoid": (logistic, lambda x: logistic(x) * logistic(-x), (0, 1), (0, 0), {}),
}  # fmt: skip


def limits(func, low, high):
    """An array function: `func` at finite numbers, the given limits at -inf and inf."""

    def one(x):
        if math.isnan(x):
            return NAN
        return low if x == -INF else high if x == INF else func(x)

    return lambda x: np.array([one(float(v)) for v in x])


def activations() -> list[Case]:
    cases = []
    for words, (func, slope, ends, slopes, options) in ACTIVATIONS.items():
        name, _, more = words.partition(", ")
        cases.append(
            case(
                name,
                f"specials{', ' + more if more else ''}",
                lambda f: (specials(f),),
                values=limits(func, *ends),
                slopes=limits(slope, *slopes),
                each=True,
                **options,
            )
        )
    rows = [
        [0.0, -INF, 1.0], [0.0, NAN, 1.0], [1e30, -1e30, 0.0], [2.0, 2.0, 2.0], [INF, 0.0, 1.0],
        [-INF, -INF, -INF], [INF, INF, 0.0], [INF, -INF, 0.0],
    ]  # fmt: skip
    for name in ("softmax", "log_softmax", "logsumexp"):
        cases.append(case(name, "rows", (rows,), axis=-1))
        cases.append(case(name, "of one", ([5.0],), axis=0))
    return [
        *cases,
        case("logsumexp", "empty", ([],)),
        case("softmax", "no rows", (np.zeros((0, 2)),)),
    ]


# Losses.

LOGITS = [[0.0, 1.0, -1.0], [2.0, 0.5, 0.0]]


def losses() -> list[Case]:
    def labelled(edge, labels, x=LOGITS, **kw):
        return case("cross_entropy", edge, (x, np.array(labels, np.int64)), **kw)

    three = ([0.0, 1.0, -2.0], [0.0, -1.0, 3.0])
    wild = ([NAN, INF, -INF, 1.0, 0.0], [1.0, 1.0, 1.0, INF, NAN])
    cases = []
    for name in ("mse", "mae", "huber"):
        cases += [case(name, "specials", wild, reduction="none"), case(name, "equal", three)]
        cases += [
            case(name, "empty", ([], [])),
            case(name, "of nothing, sum", ([], []), reduction="sum"),
        ]
    binary = ([INF, -INF, 1e30, -1e30, NAN, 0.0], [1.0, 0.0, 1.0, 0.0, 1.0, 0.5])
    none = (np.zeros((0, 3)), np.zeros((0,), np.int64))
    return [
        *cases,
        case("binary_cross_entropy", "specials", binary, reduction="none"),
        case("kl_divergence", "zeros", ([-INF, -1.0, 0.0], [0.0, 0.5, 0.0]), reduction="none"),
        case("kl_divergence", "infinite", ([-INF, NAN], [0.5, 0.5]), reduction="none"),
        labelled("label too large", [0, 3], raises="index"),
        labelled("label negative", [0, -1], raises="index"),
        labelled("label far below", [0, -100], raises="index"),
        labelled("label too large, smoothed", [0, 3], raises="index", label_smoothing=0.1),
        labelled("label negative, smoothed", [0, -1], raises="index", label_smoothing=0.1),
        labelled("label negative, each", [0, -1], raises="index", reduction="none"),
        labelled("label negative beside an ignored one", [-1, -2], raises="index", ignore_index=-2),
        labelled("label too large, classes first", [0, 2, 0], raises="index", axis=0),
        labelled("ignored by -1", [0, -1], ignore_index=-1),
        labelled("ignored by -100", [0, -100], ignore_index=-100),
        labelled("ignored beyond the classes", [0, 7], ignore_index=7),
        labelled("all ignored", [-1, -1], ignore_index=-1),
        labelled("all ignored, sum", [-1, -1], ignore_index=-1, reduction="sum"),
        labelled("minus infinity", [0, 1], [[0.0, -INF], [1.0, -INF]]),
        labelled("minus infinity elsewhere", [0, 0], [[0.0, -INF], [1.0, -INF]]),
        labelled("NaN", [0, 1], [[0.0, NAN], [1.0, 2.0]], reduction="none"),
        labelled("huge", [0, 1], [[1e30, -1e30], [1e30, -1e30]], reduction="none"),
        case("cross_entropy", "no rows", none, reduction="sum"),
        case("cross_entropy", "no rows, mean", none),
        case("cross_entropy", "probability 0 beside minus infinity", ([[0.0, -INF]], [[1.0, 0.0]])),
    ]  # fmt: skip


# Embeddings.


def tables() -> list[Case]:
    table = [[1.0, 2.0], [3.0, 4.0], [5.0, NAN]]

    def rows(edge, ids, **kw):
        func = lambda xp, ids, weight: iso.embedding(ids, weight)
        return Case("iso.embedding", edge, func, (np.array(ids), table), **kw)

    return [
        rows("twice", [0, 0, 2]),
        rows("none", np.zeros((0,), np.int64)),
        rows("negative", [0, -1], raises="index"),
        rows("too large", [0, 3], raises="index"),
        rows("far too large", [2**40], raises="index"),
        rows("negative, narrow integers", np.array([0, -1], np.int8), raises="index"),
        rows("too large, unsigned", np.array([0, 200], np.uint8), raises="index"),
    ]


# Norms, pools and products.


def layers() -> list[Case]:
    rows = [[1.0, 1.0, 1.0], [1.0, NAN, 2.0], [1.0, INF, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 4.0]]
    flat = [[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]]
    cases = []
    for name in ("layer_norm", "rms_norm"):
        cases += [case(name, "rows", (rows,)), case(name, "no rows", (np.zeros((0, 3)),))]
        cases += [case(name, "no epsilon", (flat,), epsilon=0.0), case(name, "of one", ([[3.0]],))]
    columns = np.array([*rows, [3.0, 3.0, 3.0]]).T
    cases.append(case("batch_norm", "columns", (columns, [0.0] * 6, [1.0] * 6), training=True))
    moments = ([[2.0, 2.0], [3.0, 3.0]], [2.0, 2.0], [0.0, INF])
    cases.append(case("batch_norm", "variance 0 and infinite", moments))
    image = [[[[1.0, 2.0]], [[1.0, NAN]]]]
    cases += [case("group_norm", "equal and NaN", (image,), 2)]
    cases += [case("instance_norm", "equal and NaN", (image,))]
    lines = np.array([
        [1.0, 3.0, 3.0, 2.0], [1.0, NAN, 3.0, 2.0], [INF, 1.0, -INF, -INF], [NAN, NAN, 3.0, 2.0],
        [0.0, -0.0, -0.0, 0.0],
    ])[..., None]  # fmt: skip
    plane = [[[[1.0], [NAN], [0.0]], [[2.0], [2.0], [1.0]], [[0.0], [5.0], [5.0]]]]
    for name in ("max_pool", "avg_pool"):
        cases += [
            case(name, "rows", (lines,), 2),
            case(name, "rows, padded", (lines,), 3, 1, "SAME"),
            case(name, "no examples", (np.zeros((0, 4, 1)),), 2),
            case(name, "plane, padded", (plane,), 3, 2, "SAME"),
            case(name, "window too large", (lines,), 5, raises="value"),
        ]
    for name in ("adaptive_max_pool", "adaptive_avg_pool"):
        cases.append(case(name, "rows", (lines,), 2))
    return [
        *cases,
        case("linear", "specials", ([[NAN, 1.0], [0.0, 2.0]], [[1.0, 0.0], [INF, 1.0]])),
        case("linear", "no rows", (np.zeros((0, 2)), [[1.0, 2.0]])),
        case("linear", "over nothing", (np.zeros((2, 0)), np.zeros((3, 0)))),
    ]


def window(left, right):
    return lambda xp, x: iso.local_window_mask(3, 2, left=left, right=right, backend=name_of(xp))


def sequences() -> list[Case]:
    """Convolution, attention and recurrent layers."""
    image = [[[[1.0], [NAN], [0.0]], [[2.0], [2.0], [INF]], [[0.0], [5.0], [5.0]]]]
    filters = [[[[1.0]], [[2.0]]], [[[-1.0]], [[0.0]]]]
    query, nothing = [[1.0, 0.0], [0.5, 2.0]], np.zeros((0, 2))
    keys = {
        "NaN": [[1.0, NAN], [0.0, 1.0]],
        "infinite": [[1.0, INF], [0.0, 1.0]],
        "huge": [[1e30, 0.0], [-1e30, 1.0]],
    }
    masked = lambda xp, q, k, v: iso.scaled_dot_product_attention(
        q, k, v, mask=xp.asarray([[True, False], [False, False]])
    )
    attention = [
        case("scaled_dot_product_attention", edge, (query, key, query))
        for edge, key in keys.items()
    ]
    causal = [
        case("scaled_dot_product_attention", f"{edge}, causal", (query, key, query), is_causal=True)
        for edge, key in keys.items()
    ]
    steps, h = [[1e30, NAN], [1e30, 1.0], [-1e30, 0.0]], [0.5, -0.5]
    calm, kernel = [[1e30, 1.0], [-1e30, 0.0]], np.sin(np.arange(16.0)).reshape(2, 8)
    return [
        *attention,
        *causal,
        Case("iso.scaled_dot_product_attention", "a row masked", masked, (query, query, query)),
        Case("iso.scaled_dot_product_attention", "NaN masked", masked, (query, keys["NaN"], query)),
        case("scaled_dot_product_attention", "no keys", (query, nothing, nothing)),
        case("conv2d", "specials", (image, filters), 1, "SAME"),
        case("conv2d", "no examples", (np.zeros((0, 3, 3, 1)), filters), 1, "VALID"),
        case("conv2d", "too large", (image, np.ones((4, 4, 1, 1))), 1, "VALID", raises="value"),
        case("lstm_update", "saturated", (calm, h, h, kernel, kernel)),
        case("lstm_update", "NaN", (steps, h, h, kernel, kernel)),
        case("gru_update", "saturated", (calm, h, kernel[:, :6], kernel[:, 2:])),
        case("gru_update", "NaN", (steps, h, kernel[:, :6], kernel[:, 2:])),
        case("rotary_embedding", "specials", ([[1.0, NAN, INF, 0.0], [0.0, 1.0, 2.0, -INF]],)),
        case("rotary_embedding", "no steps", (np.zeros((0, 4)),)),
        Case("iso.local_window_mask", "oneself", window(0, 0), ([0.0],)),
        Case("iso.local_window_mask", "beyond the keys", window(9, 9), ([0.0],)),
    ]  # fmt: skip


def listed(stated):
    """The layers among the examples that are not stated here, at zero and without examples."""
    for name, entry in FUNCTIONS.items():
        layer = getattr(getattr(iso, name, None), "__module__", "").startswith("isomorph.layers")
        if not layer or name in stated or not may(entry, "edges") or not may(entry, "empty"):
            continue
        func = lambda xp, *arrays, run=entry.call: run(iso, *arrays)
        zeros = tuple(np.zeros(shape) for shape in entry.shapes)
        nothing = (np.zeros((0, *entry.shapes[0][1:])), *zeros[1:])
        yield Case(f"iso.{name}", "zeros", func, zeros, entry.wanted)
        yield Case(f"iso.{name}", "no examples", func, nothing, entry.wanted)


STATED = [*activations(), *losses(), *tables(), *layers(), *sequences()]
CASES = [*STATED, *listed({case.name.removeprefix("iso.") for case in STATED})]
