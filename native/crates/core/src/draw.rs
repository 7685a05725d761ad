//! Everything drawn for a key after its slot comes from its second hash, salted by the use, so that no draw repeats
//! another. An engine's salt is the XXH32 of its id, never its place in a list: gateways number engines differently.
//! The twin of `packages/selector/src/draw.ts`.

use crate::ln::ln;
use crate::xxh32::xxh32_of_word;

/// Salt of the draw that is held against an engine's factor; combined with the engine's own by exclusive or.
const FACTOR_SALT: u32 = 0x5BD1_E995;

/// A key's draw at an engine.
pub fn rendezvous_draw(hash2: u32, id_hash: u32) -> u32 {
    xxh32_of_word(hash2, id_hash)
}

/// Weighted rendezvous: the candidate with the least score takes the key. −ln(u)/w is the first arrival of a Poisson
/// process of rate w, so the least of several is at a candidate with probability w ÷ Σ w. `weight` is above 0.
pub fn rendezvous_score(draw: u32, weight: f64) -> f64 {
    // The half keeps u off 0 and 1.
    let u = (f64::from(draw) + 0.5) / 4_294_967_296.0;
    -ln(u) / weight
}

/// Whether a score is above `least` beyond doubt, without the logarithm: −ln(u) ≥ 1 − u. Of many candidates all but a few
/// are told so.
pub fn surely_scores_above(draw: u32, weight: f64, least: f64) -> bool {
    4_294_967_295.5 - f64::from(draw) > least * weight * UNITS
}

/// 2³², and a billionth more for the rounding of both sides.
const UNITS: f64 = 4_294_967_300.0;

/// Whether a key stays at an engine whose share is cut to `factor` 65535ths: all keys at 65535, none at 0.
pub fn stays_under_factor(hash2: u32, id_hash: u32, factor: u32) -> bool {
    xxh32_of_word(hash2, id_hash ^ FACTOR_SALT) % 65_535 < factor
}

/// Hashes of a request that has no key: each count gives another pair, so that load spreads.
pub fn keyless_hash(count: u32, seed: u32) -> u32 {
    xxh32_of_word(count, seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendezvous_gives_each_candidate_its_part() {
        let candidates = [(1_u32, 1.0), (2, 2.0), (3, 5.0)];
        let mut wins = [0_u32; 3];
        let draws = 200_000;
        for key in 0..draws {
            let scores =
                candidates.map(|(id, weight)| rendezvous_score(rendezvous_draw(xxh32_of_word(key, 9), id), weight));
            let least = (0..3).min_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
            wins[least] += 1;
        }
        for ((_, weight), won) in candidates.iter().zip(wins) {
            let (wanted, found) = (weight / 8.0, f64::from(won) / f64::from(draws));
            // Five standard deviations of a binomial part.
            let within = 5.0 * (wanted * (1.0 - wanted) / f64::from(draws)).sqrt();
            assert!((found - wanted).abs() < within, "{found} is not {wanted}");
        }
    }

    #[test]
    fn a_factor_keeps_its_part_of_the_keys_and_always_the_same_ones() {
        let kept = |factor: u32| (0..65_536).filter(|&key| stays_under_factor(key, 77, factor)).count();
        assert_eq!(kept(0), 0);
        assert_eq!(kept(65_535), 65_536);
        let half = kept(32_768) as f64 / 65_536.0;
        assert!((half - 0.5).abs() < 0.01, "{half}");
        for key in 0..65_536 {
            assert!(!stays_under_factor(key, 77, 10_000) || stays_under_factor(key, 77, 20_000));
        }
    }
}
