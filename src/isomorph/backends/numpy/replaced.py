"""What `isomorph.scipy` replaces, for messages: this package must not import that one."""

from __future__ import annotations

REPLACED = {
    "special": """comb factorial log_softmax logsumexp multigammaln polygamma softmax spherical_jn
        spherical_yn zeta""",
    "stats": """bernoulli beta binom cauchy chi2 dirichlet expon f gamma gennorm geom gompertz
        gumbel_l gumbel_r halfcauchy halfnorm invgamma invgauss laplace logistic lognorm multinomial
        multivariate_normal nbinom norm pareto poisson powerlaw rayleigh skewnorm t uniform vonmises
        weibull_min""",
    "linalg": """block_diag cho_factor cho_solve cholesky circulant coshm cosm det eig eigh eigvals
        eigvalsh expm hankel inv logm lstsq norm pinv polar qr sinhm sinm solve solve_banded
        solve_continuous_lyapunov solve_discrete_lyapunov solve_sylvester solve_toeplitz
        solve_triangular sqrtm svd svdvals tanhm toeplitz""",
    "signal": """convolve convolve2d correlate correlate2d detrend fftconvolve hilbert lfilter
        oaconvolve""",
    "integrate": "cumulative_trapezoid odeint romb simpson trapezoid",
    "interpolate": "CubicSpline PchipInterpolator interp1d",
    "fft": """dct dctn dst dstn fft fft2 fftn fftshift hfft idct idctn idst idstn ifft ifft2 ifftn
        ifftshift ihfft irfft irfft2 irfftn rfft rfft2 rfftn""",
}


def replacement(module: str, name: str) -> str:
    """What to use in place of a function of SciPy, as the part of a message; may be empty."""
    place = module.removeprefix("scipy.").partition(".")[0]
    if place == "stats":  # its methods do not say of which distribution they are
        return "isomorph.scipy.stats has rules for many distributions; "
    known = name.partition(".")[0] in REPLACED.get(place, "").split()
    return f"use isomorph.scipy.{place}.{name.partition('.')[0]}; " if known else ""
