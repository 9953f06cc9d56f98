/* Another C library, to find tests that depend on this one. Each result of exp, log, sin … that is
   not exact is rounded to the nearest number or to the second nearest: an error below one unit in
   the last place, which is what libraries promise. A hash of the argument and LIBM_SEED chooses.

   cc -O2 -fPIC -shared -fno-builtin -o another_libm.so tests/another_libm.c -lm
   LD_PRELOAD=./another_libm.so NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4" pytest tests/special -k numpy

   NumPy calls the library only where it has no vector kernels; on other processors than x86-64 with
   glibc, disable their features instead. `long double` must be wider than double. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 1;

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("LIBM_SEED");
    if (text) seed = strtoull(text, NULL, 10);
}

static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return x ^ x >> 33;
}

/* Of sizes, so that odd and even functions stay so. */
static int second(double x, double y, int function) {
    uint64_t a, b;
    x = fabs(x), y = fabs(y);
    memcpy(&a, &x, 8), memcpy(&b, &y, 8);
    return mixed(mixed(a) + b + seed * 1000003 + function) & 1;
}

static double rounded(long double exact, double x, double y, int function) {
    double near = exact;
    if (!isfinite(near) || near == exact || fabs(near) < 1e-307) return near;
    double other = nextafter(near, exact > near ? INFINITY : -INFINITY);
    return isfinite(other) && second(x, y, function) ? other : near;
}

static float rounded_f(long double exact, float x, float y, int function) {
    float near = exact;
    if (!isfinite(near) || near == exact || fabsf(near) < 1e-37f) return near;
    float other = nextafterf(near, exact > near ? INFINITY : -INFINITY);
    return isfinite(other) && second(x, y, function) ? other : near;
}

#define ONE(name, number)                                                            \
    double name(double x) { return rounded(name##l(x), x, 0, number); }              \
    float name##f(float x) { return rounded_f(name##l(x), x, 0, number); }
#define TWO(name, number)                                                            \
    double name(double x, double y) { return rounded(name##l(x, y), x, y, number); } \
    float name##f(float x, float y) { return rounded_f(name##l(x, y), x, y, number); }

ONE(exp, 1) ONE(exp2, 2) ONE(expm1, 3) ONE(log, 4) ONE(log2, 5) ONE(log10, 6) ONE(log1p, 7)
ONE(sin, 8) ONE(cos, 9) ONE(tan, 10) ONE(asin, 11) ONE(acos, 12) ONE(atan, 13)
ONE(sinh, 14) ONE(cosh, 15) ONE(tanh, 16) ONE(asinh, 17) ONE(acosh, 18) ONE(atanh, 19)
ONE(cbrt, 20) ONE(erf, 21) ONE(erfc, 22)
TWO(pow, 23) TWO(atan2, 24) TWO(hypot, 25)

void sincos(double x, double *s, double *c) { *s = sin(x), *c = cos(x); }
void sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
