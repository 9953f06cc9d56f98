"""Edge inputs of linear algebra and Fourier transforms: singular, indefinite and asymmetric
matrices, equal eigenvalues, size zero.
"""

import numpy as np
from edge_cases import INF, NAN, Case, at

ZERO = [[0.0, 0.0], [0.0, 0.0]]
SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
RANK_ONE = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]]
NEARLY = [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]]  # singular except for rounding
INDEFINITE = [[1.0, 2.0], [2.0, 1.0]]
# the factorization fails in the last column only
NEGATIVE = [[4.0, 2.0, 1.0], [2.0, 5.0, 3.0], [1.0, 3.0, -6.0]]
LOWER = [[4.0, 100.0], [1.0, 3.0]]  # only the lower triangle is read
OPEN = [[4.0, NAN], [1.0, 3.0]]  # the upper triangle may hold anything
UPPER = [[4.0, 1.0], [100.0, 3.0]]
WITH_NAN = [[1.0, NAN], [NAN, 2.0]]
WITH_INF = [[1.0, INF], [INF, 2.0]]
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
DEFINITE = [[4.0, 1.0], [1.0, 3.0]]
HUGE = [[1e30, 0.0], [0.0, 1e-30]]
NONE = np.zeros((0, 0))
NO_MATRICES = np.zeros((0, 2, 2))
OBLONG = [[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]
COMPLEX = np.array([[2.0, 1 - 1j, 0.5j], [1 + 1j, 3.0, 0.25], [-0.5j, 0.25, 1.0]])
COMPLEX_LOWER = COMPLEX + np.triu(np.full((3, 3), 5 + 2j), 1) + np.diag([1j, 2j, -1j])
SMOOTH, FLAT = [LOWER, OPEN, DEFINITE, INDEFINITE], [IDENTITY, ZERO, SINGULAR]


def decompositions() -> list[Case]:
    values = lambda xp, x: xp.linalg.eigh(x).eigenvalues

    def projectors(xp, x):  # eigenvectors are defined up to a phase, projectors are unique
        v = xp.linalg.eigh(x).eigenvectors
        return xp.matmul(v[..., :1], xp.conj(xp.matrix_transpose(v[..., :1])))

    def rays(xp, x):
        u, s, vh = xp.linalg.svd(x, full_matrices=False)
        return xp.matmul(u[..., :1], vh[..., :1, :]), s

    def together(xp, x):
        q, r = xp.linalg.qr(x)
        return xp.abs(r), xp.matmul(q, r)

    cases = []
    for name, call in (
        ("linalg.eigh", values),
        ("linalg.eigvalsh", at("linalg.eigvalsh", "", ()).call),
    ):
        one = {"hermitian": True}
        cases += [
            Case(name, "not symmetric", call, (SMOOTH,), twice=True, **one),
            Case(name, "equal eigenvalues", call, (FLAT,), **one),
            Case(name, "huge and tiny", call, (HUGE,), **one),
            Case(name, "complex", call, (COMPLEX_LOWER,), twice=True, **one),
            Case(name, "not finite", call, ([WITH_NAN, WITH_INF],), lost=True),
            Case(name, "of size zero", call, (NONE,)),
            Case(name, "no matrices", call, (NO_MATRICES,)),
            Case(name, "not square", call, (OBLONG,), raises="value"),
        ]  # fmt: skip
    cholesky = lambda edge, *x, **kw: at("linalg.cholesky", edge, x, **kw)
    return [
        *cases,
        Case("linalg.eigh", "vectors", projectors, (SMOOTH,), twice=True, hermitian=True),
        Case("linalg.eigh", "vectors, complex", projectors, (COMPLEX_LOWER,), hermitian=True),
        Case(
            "linalg.eigh",
            "vectors of equal eigenvalues",
            projectors,
            ([IDENTITY, ZERO],),
            hermitian=True,
        ),
        cholesky("not symmetric", [LOWER, OPEN, DEFINITE], twice=True, hermitian=True),
        cholesky("not symmetric, upper", [UPPER, DEFINITE], upper=True, twice=True, hermitian=True),
        cholesky("complex", COMPLEX_LOWER, twice=True, hermitian=True),
        cholesky("indefinite", INDEFINITE, raises="matrix"),
        cholesky("indefinite in the last column", NEGATIVE, raises="matrix"),
        cholesky("indefinite above the diagonal", LOWER, upper=True, raises="matrix"),
        cholesky("one of two", [DEFINITE, INDEFINITE], raises="matrix"),
        cholesky("zero", ZERO, raises="matrix"),
        cholesky("NaN", WITH_NAN, lost=True),
        cholesky("of size zero", NONE),
        cholesky("no matrices", NO_MATRICES),
        cholesky("not square", OBLONG, raises="value"),
        at("linalg.svdvals", "equal, zero and singular", (FLAT,)),
        at("linalg.svdvals", "huge and tiny", (HUGE,)),
        at("linalg.svdvals", "NaN", (WITH_NAN,), lost=True),
        at("linalg.svdvals", "of size zero", (NONE,)),
        at("linalg.svdvals", "complex", (COMPLEX_LOWER,), twice=True),
        Case("linalg.svd", "oblong", rays, (OBLONG,), twice=True),
        Case("linalg.svd", "complex", rays, (COMPLEX_LOWER,), twice=True),
        Case("linalg.svd", "equal singular values", rays, (IDENTITY,)),
        at("linalg.svd", "of size zero", (NONE,)),
        at("linalg.svd", "NaN", (WITH_NAN,), lost=True),
        Case("linalg.qr", "oblong", together, (OBLONG,)),
        Case("linalg.qr", "zero", together, (ZERO,)),
        Case("linalg.qr", "NaN", together, (WITH_NAN,), lost=True),
        at("linalg.qr", "of size zero", (NONE,)),
    ]


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
        at("linalg.solve", "for nothing, in batches", (DEFINITE, np.zeros((3, 2, 0)))),
        at("linalg.solve", "of nothing, in batches", (np.zeros((3, 1, 0, 0)), np.zeros((2, 0, 2)))),
        at("linalg.solve", "sizes that differ", (DEFINITE, [1.0, 2.0, 3.0]), raises="value"),
        at("linalg.det", "singular", ([SINGULAR, ZERO, DEFINITE],), twice=True),
        at("linalg.det", "rank one of three", ([RANK_ONE, NEARLY],), twice=True),
        at("linalg.det", "singular, complex", ([[1.0, 1j], [1j, -1.0 + 0j]],), twice=True),
        at("linalg.det", "NaN", (WITH_NAN,)),
        at("linalg.det", "of size zero", (NONE,)),
        at("linalg.slogdet", "singular", (SINGULAR,)),
        at("linalg.slogdet", "zero", (ZERO,)),
        at("linalg.slogdet", "negative and huge", ([INDEFINITE, HUGE],)),
        at("linalg.slogdet", "of size zero", (NONE,)),
        Case("linalg.slogdet", "NaN", lambda xp, x: xp.linalg.slogdet(x).logabsdet, (WITH_NAN,)),
        at("linalg.pinv", "equal, zero and singular", ([SINGULAR, ZERO, IDENTITY],)),
        at("linalg.pinv", "oblong", (OBLONG,)),
        at("linalg.pinv", "nothing", (np.zeros((0, 2)),)),
        at("linalg.matrix_rank", "equal, zero and singular", (FLAT,)),
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
    vectors = [[0.0, 0.0], [0.0, 3.0], [NAN, 1.0], [-INF, 1.0], [2.0, -2.0]]
    matrices = [ZERO, SINGULAR, IDENTITY, [[1.0, -2.0], [3.0, 0.0]]]
    cases = []
    for ord in (0, 1, 2, 3, 0.5, INF, -INF, -1):
        cases.append(at("linalg.vector_norm", f"order {ord}", (vectors,), ord=ord, axis=1))
    for ord in ("fro", "nuc", 1, -1, 2, -2, INF, -INF):
        lost = ord in ("nuc", 2, -2)  # by singular values
        cases.append(at("linalg.matrix_norm", f"order {ord}", (matrices,), ord=ord))
        cases.append(at("linalg.matrix_norm", f"NaN, order {ord}", (WITH_NAN,), ord=ord, lost=lost))
    huge = lambda f: ([float(f.max) / 4, float(f.max) / 4],)
    return [
        *cases,
        at("linalg.vector_norm", "huge", huge),
        at("linalg.vector_norm", "empty", ([],)),
        at("linalg.vector_norm", "all of zeros", (ZERO,)),
    ]


def transforms() -> list[Case]:
    line, cube = [1.0, NAN, 2.0, INF], [[1.0, INF], [0.0, 2.0]]
    points, none = [1.0 + 0j, complex(NAN, 0), 2j], np.zeros((0,))
    cases = []
    for name in ("fft", "ifft", "irfft", "hfft"):
        cases += [
            at(f"fft.{name}", "NaN", (points,)),
            at(f"fft.{name}", "longer", ([1 + 1j, 2.0],), n=5),
        ]
        cases += [at(f"fft.{name}", "of one", ([1.0 + 0j],), n=1)]
        cases += [at(f"fft.{name}", "nothing", (none + 0j,), raises="value")]
        cases += [at(f"fft.{name}", "no points", (points,), n=0, raises="value")]
    cases += [at("fft.rfft", "NaN", (line,))]
    for name in ("rfft", "ihfft"):
        cases += [
            at(f"fft.{name}", "longer", ([1.0, 2.0],), n=5),
        ]
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
                Case(
                    f"fft.{name}",
                    f"of {n}",
                    lambda xp, x, n=n, name=name: xp.astype(getattr(xp.fft, name)(n), xp.float32),
                    ([0.0],),
                )
            )
    return cases


CASES = [*decompositions(), *solving(), *norms(), *transforms()]
