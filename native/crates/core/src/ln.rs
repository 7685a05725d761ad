//! Natural logarithm, written out: the last bits of V8's and Rust's own differ, and routers that disagree in the last bit
//! send one key to two engines. The twin of `packages/selector/src/ln.ts`: the same operations in the same order, none
//! fused (Rust never contracts a product and a sum by itself).
//!
//! ```text
//! x = m·2^e, m in [√½, √2),  s = (m − 1)/(m + 1),  ln x = e·ln 2 + 2s·(1 + s²/3 + s⁴/5 + …)
//! ```

/// Of a positive, finite, normal double. Within 1e-15 of the true value, relative to max(1, |ln x|).
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = f64::from(((bits >> 52) as i32) - 1023);
    let mut m = f64::from_bits((bits & 0x000F_FFFF_FFFF_FFFF) | 0x3FF0_0000_0000_0000);
    if m >= std::f64::consts::SQRT_2 {
        m *= 0.5;
        exponent += 1.0;
    }
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut series = 1.0 / 23.0;
    for odd in [21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        series = series * z + 1.0 / odd;
    }
    let twice = s + s;
    exponent * LN2_HIGH + (twice + (twice * (z * series) + exponent * LN2_LOW))
}

/// The upper 32 bits of ln 2, so that exponent × `LN2_HIGH` is exact, and the rest.
const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

#[cfg(test)]
mod tests {
    use super::ln;

    #[test]
    fn is_within_1e_15_of_the_platforms_logarithm() {
        let mut state: u64 = 7;
        for _ in 0..1_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Every exponent of a normal double, and then the draws that the router takes.
            let wide = f64::from_bits((state & 0x7FFF_FFFF_FFFF_FFFF) % 0x7FE0_0000_0000_0000 + 0x0010_0000_0000_0000);
            let draw = ((state >> 32) as f64 + 0.5) / 4_294_967_296.0;
            for x in [wide, draw] {
                let error = (ln(x) - x.ln()).abs() / x.ln().abs().max(1.0);
                assert!(error <= 1e-15, "ln({x:e}) is off by {error:e}");
            }
        }
    }

    #[test]
    fn is_exact_at_one_and_keeps_order_around_it() {
        assert_eq!(ln(1.0), 0.0);
        assert!(ln(1.0 - f64::EPSILON) < 0.0);
        assert!(ln(1.0 + f64::EPSILON) > 0.0);
    }
}
