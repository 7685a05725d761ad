/**
 * Natural logarithm of a positive, finite, normal double, written out: the last bits of `Math.log` differ between V8
 * and Rust, and routers that disagree in the last bit send one key to two engines. Only +, −, ×, ÷ and the bits of the
 * double are used, which IEEE 754 fixes; a port must run the same operations in the same order and fuse none.
 *
 *     x = m·2^e, m in [√½, √2),  s = (m − 1)/(m + 1),  ln x = e·ln 2 + 2s·(1 + s²/3 + s⁴/5 + …)
 *
 * |s| < 0.172, so the first term left out, s²⁴/25, is under 2e-20. Within 1e-15 of the true value, relative to
 * max(1, |ln x|).
 */
export function ln(x: number): number {
  double[0] = x;
  let high = halves[HIGH]!;
  let exponent = (high >>> 20) - 1023;
  high = (high & 0xfffff) | 0x3ff00000;
  halves[HIGH] = high;
  let m = double[0]!;
  if (m >= Math.SQRT2) {
    m = m * 0.5;
    exponent = exponent + 1;
  }
  const s = (m - 1) / (m + 1);
  const z = s * s;
  let series = 1 / 23;
  series = series * z + 1 / 21;
  series = series * z + 1 / 19;
  series = series * z + 1 / 17;
  series = series * z + 1 / 15;
  series = series * z + 1 / 13;
  series = series * z + 1 / 11;
  series = series * z + 1 / 9;
  series = series * z + 1 / 7;
  series = series * z + 1 / 5;
  series = series * z + 1 / 3;
  const twice = s + s;
  return exponent * LN2_HIGH + (twice + (twice * (z * series) + exponent * LN2_LOW));
}

/** The upper 32 bits of ln 2, so that exponent × LN2_HIGH is exact, and the rest. */
const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;

const double = new Float64Array(1);
const halves = new Uint32Array(double.buffer);
double[0] = 1;
/** Which half of a double has the exponent: depends on the machine's byte order. */
const HIGH = halves[1] === 0x3ff00000 ? 1 : 0;
