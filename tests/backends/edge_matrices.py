"""Edge inputs of linear algebra and Fourier transforms: singular, indefinite, not symmetric, with
equal eigenvalues, of size zero."""

import numpy as np
from edge_cases import INF, NAN, Case, at

ZERO = [[0.0, 0.0], [0.0, 0.0]]
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
RANK_ONE = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]]
INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]
NEGATIVE = [[4.0, 2.0, 1.0], [2.0, 5.0, 3.0], [1.0, 3.0, -6.0]]  # found in the last column
LOWER = [[4.0, 100.0], [1.0, 3.0]]  # the lower triangle counts
WITH_NAN = [[1.0, NAN], [NAN, 2.0]]
WITH_INF = [[1.0, INF], [INF, 2.0]]
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
DEFINITE = [[4.0, 1.0], [1.0, 3.0]]
HUGE = [[1e30, 0.0], [0.0, 1e-30]]
NONE = np.zeros((0, 0))
NO_MATRICES = np.zeros((0, 2, 2))
OBLONG = [[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]
COMPLEX = np.array([[2.0, 1 - 1j, 0.5j], [1 + 1j, 3.0, 0.25], [-0.5j, 0.25, 1.0]])
COMPLEX_LOWER = COMPLEX + np.triu(np.full((3, 3), 5 + 2j), 1)


def decompositions() -> list[Case]:
    values = lambda xp, x: xp.linalg.eigh(x).eigenvalues
    # vectors have a free sign: what they project on has none
    first = lambda xp, x: xp.linalg.eigh(x).eigenvectors[:, 0]
    projector = lambda xp, x: xp.linalg.outer(first(xp, x), xp.conj(first(xp, x)))

    def ray(xp, x):
        u, s, vh = xp.linalg.svd(x, full_matrices=False)
        return xp.matmul(u[:, :1], vh[:1, :]), s

    def together(xp, x):
        q, r = xp.linalg.qr(x)
        return xp.abs(r), xp.matmul(q, r)

    symmetric = {
        "not symmetric": LOWER, "complex, not Hermitian": COMPLEX_LOWER, "complex": COMPLEX,
        "equal eigenvalues": IDENTITY, "zero": ZERO, "singular": SINGULAR, "indefinite": INDEFINITE,
        "huge and tiny": HUGE, "of size zero": NONE, "no matrices": NO_MATRICES,
    }  # fmt: skip
    cases = []
    for edge, x in symmetric.items():
        smooth = edge in ("not symmetric", "complex", "complex, not Hermitian", "indefinite")
        cases.append(at("linalg.eigvalsh", edge, (x,), twice=smooth))
        cases.append(Case("linalg.eigh", edge, values, (x,), twice=smooth))
        if smooth:
            cases.append(Case("linalg.eigh", f"vectors, {edge}", projector, (x,), twice=True))
    for name in ("linalg.eigvalsh", "linalg.eigh"):
        call = values if name == "linalg.eigh" else at(name, "", ()).call
        cases.append(Case(name, "NaN", call, (WITH_NAN,)))
        cases.append(Case(name, "infinite", call, (WITH_INF,)))
        cases.append(Case(name, "not square", call, (OBLONG,), raises="value"))
    return [
        *cases,
        Case("linalg.eigh", "vectors, equal eigenvalues", projector, (IDENTITY,)),
        Case("linalg.eigh", "vectors, zero", projector, (ZERO,)),
        at("linalg.cholesky", "not symmetric", (LOWER,), twice=True),
        at("linalg.cholesky", "not symmetric, upper", (LOWER,), upper=True),
        at("linalg.cholesky", "complex, not Hermitian", (COMPLEX_LOWER,)),
        at("linalg.cholesky", "complex", (COMPLEX,), twice=True),
        at("linalg.cholesky", "indefinite", (INDEFINITE,), raises="matrix"),
        at("linalg.cholesky", "indefinite in the last column", (NEGATIVE,), raises="matrix"),
        at("linalg.cholesky", "one of two", ([DEFINITE, INDEFINITE],), raises="matrix"),
        at("linalg.cholesky", "zero", (ZERO,), raises="matrix"),
        at("linalg.cholesky", "NaN", (WITH_NAN,), raises="matrix"),
        at("linalg.cholesky", "of size zero", (NONE,)),
        at("linalg.cholesky", "no matrices", (NO_MATRICES,)),
        at("linalg.cholesky", "not square", (OBLONG,), raises="value"),
        at("linalg.svdvals", "equal", (IDENTITY,)),
        at("linalg.svdvals", "zero", (ZERO,)),
        at("linalg.svdvals", "singular", (SINGULAR,)),
        at("linalg.svdvals", "huge and tiny", (HUGE,)),
        at("linalg.svdvals", "NaN", (WITH_NAN,)),
        at("linalg.svdvals", "of size zero", (NONE,)),
        at("linalg.svdvals", "complex", (COMPLEX_LOWER,), twice=True),
        Case("linalg.svd", "oblong", ray, (OBLONG,), twice=True),
        Case("linalg.svd", "complex", ray, (COMPLEX_LOWER,), twice=True),
        Case("linalg.svd", "equal singular values", ray, (IDENTITY,)),
        at("linalg.svd", "of size zero", (NONE,)),
        at("linalg.svd", "NaN", (WITH_NAN,)),
        Case("linalg.qr", "oblong", together, (OBLONG,)),
        Case("linalg.qr", "zero", together, (ZERO,)),
        Case("linalg.qr", "singular", together, (SINGULAR,)),
        Case("linalg.qr", "NaN", together, (WITH_NAN,)),
        at("linalg.qr", "of size zero", (NONE,)),
    ]  # fmt: skip


def solving() -> list[Case]:
    two = [1.0, 2.0]
    return [
        at("linalg.inv", "singular", (SINGULAR,), raises="matrix"),
        at("linalg.inv", "zero", (ZERO,), raises="matrix"),
        at("linalg.inv", "one of two", ([DEFINITE, SINGULAR],), raises="matrix"),
        at("linalg.inv", "huge and tiny", (HUGE,)),
        at("linalg.inv", "NaN", (WITH_NAN,)),
        at("linalg.inv", "of size zero", (NONE,)),
        at("linalg.inv", "not square", (OBLONG,), raises="value"),
        at("linalg.solve", "singular", (SINGULAR, two), raises="matrix"),
        at("linalg.solve", "NaN", (WITH_NAN, two)),
        at("linalg.solve", "huge and tiny", (HUGE, two)),
        at("linalg.solve", "for nothing", (DEFINITE, np.zeros((2, 0)))),
        at("linalg.solve", "sizes that differ", (DEFINITE, [1.0, 2.0, 3.0]), raises="value"),
        at("linalg.det", "singular", (SINGULAR,), twice=True),
        at("linalg.det", "zero", (ZERO,), twice=True),
        at("linalg.det", "rank one of three", (RANK_ONE,), twice=True),
        at("linalg.det", "singular beside regular", ([SINGULAR, DEFINITE],), twice=True),
        at("linalg.det", "singular, complex", ([[1.0, 1j], [1j, -1.0 + 0j]],), twice=True),
        at("linalg.det", "NaN", (WITH_NAN,)),
        at("linalg.det", "of size zero", (NONE,)),
        at("linalg.slogdet", "singular", (SINGULAR,)),
        at("linalg.slogdet", "zero", (ZERO,)),
        at("linalg.slogdet", "negative", (INDEFINITE,)),
        at("linalg.slogdet", "huge and tiny", (HUGE,)),
        at("linalg.slogdet", "of size zero", (NONE,)),
        at("linalg.slogdet", "NaN", (WITH_NAN,)),
        at("linalg.pinv", "singular", (SINGULAR,)),
        at("linalg.pinv", "zero", (ZERO,)),
        at("linalg.pinv", "equal singular values", (IDENTITY,)),
        at("linalg.pinv", "oblong", (OBLONG,)),
        at("linalg.pinv", "nothing", (np.zeros((0, 2)),)),
        at("linalg.matrix_rank", "zero", (ZERO,)),
        at("linalg.matrix_rank", "singular", (SINGULAR,)),
        at("linalg.matrix_rank", "huge and tiny", (HUGE,)),
        at("linalg.matrix_power", "to 0", (SINGULAR,), 0),
        at("linalg.matrix_power", "to -1, singular", (SINGULAR,), -1, raises="matrix"),
        at("linalg.matrix_power", "NaN", (WITH_NAN,), 2),
        at("linalg.diagonal", "outside", (OBLONG,), offset=3),
        at("linalg.diagonal", "nothing", (NONE,)),
        at("linalg.diagonal", "of a vector", (two,), raises="value"),
        at("linalg.trace", "outside", (OBLONG,), offset=-2),
        at("linalg.trace", "NaN", (WITH_NAN,)),
        at("linalg.trace", "nothing", (NONE,)),
        at("linalg.outer", "nothing", ([], two)),
        at("linalg.outer", "specials", ([NAN, 0.0], [INF, 1.0])),
        at("linalg.cross", "specials", ([NAN, 0.0, 1.0], [INF, 1.0, 2.0])),
        at("linalg.cross", "two numbers", (two, two), raises="value"),
        at("linalg.matrix_transpose", "of size zero", (np.zeros((0, 3)),)),
    ]


def norms() -> list[Case]:
    vectors = {
        "zero": [0.0, 0.0], "one zero": [0.0, 3.0], "NaN": [NAN, 1.0], "infinity": [-INF, 1.0],
        "ties": [2.0, -2.0], "empty": [],
    }  # fmt: skip
    cases = []
    for ord in (0, 1, 2, 3, 0.5, INF, -INF, -1):
        for edge, x in vectors.items():
            infinite = ord in (INF, -INF, -1) and edge == "empty"
            if not infinite:
                cases.append(at("linalg.vector_norm", f"{edge}, order {ord}", (x,), ord=ord))
    for ord in ("fro", "nuc", 1, -1, 2, -2, INF, -INF):
        for edge, x in {"zero": ZERO, "singular": SINGULAR, "equal": IDENTITY, "NaN": WITH_NAN}.items():
            cases.append(at("linalg.matrix_norm", f"{edge}, order {ord}", (x,), ord=ord))
    huge = lambda f: ([float(f.max) / 4, float(f.max) / 4],)
    return [*cases, at("linalg.vector_norm", "huge", huge)]


def transforms() -> list[Case]:
    line, cube = [1.0, NAN, 2.0, INF], [[1.0, INF], [0.0, 2.0]]
    points, none = [1.0 + 0j, complex(NAN, 0), 2j], np.zeros((0,))
    cases = []
    for name in ("fft", "ifft", "irfft", "hfft"):
        cases += [at(f"fft.{name}", "NaN", (points,)), at(f"fft.{name}", "longer", ([1 + 1j, 2.0],), n=5)]
        cases += [at(f"fft.{name}", "of one", ([1.0 + 0j],), n=1)]
        cases += [at(f"fft.{name}", "nothing", (none + 0j,), raises="value")]
        cases += [at(f"fft.{name}", "no points", (points,), n=0, raises="value")]
    for name in ("rfft", "ihfft"):
        cases += [at(f"fft.{name}", "NaN", (line,)), at(f"fft.{name}", "longer", ([1.0, 2.0],), n=5)]
        cases += [at(f"fft.{name}", "nothing", (none,), raises="value")]
    for name in ("fftn", "ifftn", "irfftn"):
        cases += [at(f"fft.{name}", "infinite", (np.array(cube) + 0j,))]
        cases += [at(f"fft.{name}", "no points", (np.zeros((0, 2), complex),), raises="value")]
    cases += [at("fft.rfftn", "infinite", (cube,))]
    for name in ("fftshift", "ifftshift"):
        cases += [at(f"fft.{name}", "specials", (line,)), at(f"fft.{name}", "nothing", (none,))]
    for name in ("fftfreq", "rfftfreq"):
        for n in (1, 2, 5):
            cases.append(
                Case(f"fft.{name}", f"of {n}", lambda xp, x, n=n, name=name: getattr(xp.fft, name)(n), ([0.0],))
            )
    return cases


CASES = [*decompositions(), *solving(), *norms(), *transforms()]
