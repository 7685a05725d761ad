//! XXH32, Yann Collet's 32-bit hash, written from its published description (xxHash specification, version 0.1.1).

const PRIME_1: u32 = 0x9E37_79B1;
const PRIME_2: u32 = 0x85EB_CA77;
const PRIME_3: u32 = 0xC2B2_AE3D;
const PRIME_4: u32 = 0x27D4_EB2F;
const PRIME_5: u32 = 0x1656_67B1;

/// XXH32 of `bytes`.
pub fn xxh32(bytes: &[u8], seed: u32) -> u32 {
    let (stripes, tail) = bytes.as_chunks::<16>();
    let mut hash = if stripes.is_empty() {
        seed.wrapping_add(PRIME_5)
    } else {
        let mut lanes = [
            seed.wrapping_add(PRIME_1).wrapping_add(PRIME_2),
            seed.wrapping_add(PRIME_2),
            seed,
            seed.wrapping_sub(PRIME_1),
        ];
        for stripe in stripes {
            let (words, _) = stripe.as_chunks::<4>();
            for (lane, word) in lanes.iter_mut().zip(words) {
                *lane = round(*lane, u32::from_le_bytes(*word));
            }
        }
        lanes[0]
            .rotate_left(1)
            .wrapping_add(lanes[1].rotate_left(7))
            .wrapping_add(lanes[2].rotate_left(12))
            .wrapping_add(lanes[3].rotate_left(18))
    };
    // The description counts the length modulo 2^32.
    hash = hash.wrapping_add(bytes.len() as u32);
    let (words, rest) = tail.as_chunks::<4>();
    for word in words {
        hash = mix_word(hash, u32::from_le_bytes(*word));
    }
    for &byte in rest {
        hash = hash.wrapping_add(u32::from(byte).wrapping_mul(PRIME_5)).rotate_left(11).wrapping_mul(PRIME_1);
    }
    avalanche(hash)
}

/// XXH32 of the four bytes of `value`, little endian: a draw that depends on both words.
pub fn xxh32_of_word(value: u32, seed: u32) -> u32 {
    avalanche(mix_word(seed.wrapping_add(PRIME_5).wrapping_add(4), value))
}

fn round(lane: u32, word: u32) -> u32 {
    lane.wrapping_add(word.wrapping_mul(PRIME_2)).rotate_left(13).wrapping_mul(PRIME_1)
}

fn mix_word(hash: u32, word: u32) -> u32 {
    hash.wrapping_add(word.wrapping_mul(PRIME_3)).rotate_left(17).wrapping_mul(PRIME_4)
}

fn avalanche(mut hash: u32) -> u32 {
    hash = (hash ^ (hash >> 15)).wrapping_mul(PRIME_2);
    hash = (hash ^ (hash >> 13)).wrapping_mul(PRIME_3);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The buffer of the reference implementation's sanity check: top bytes of 2654435761 · 11400714785074694797^i.
    fn sanity_buffer() -> Vec<u8> {
        let mut state: u64 = 2_654_435_761;
        (0..222)
            .map(|_| {
                let byte = (state >> 56) as u8;
                state = state.wrapping_mul(11_400_714_785_074_694_797);
                byte
            })
            .collect()
    }

    #[test]
    fn equals_the_reference_implementations_vectors() {
        let buffer = sanity_buffer();
        for (bytes, seed, hash) in [
            (0, 0, 0x02CC_5D05),
            (0, 2_654_435_761, 0x36B7_8AE7),
            (1, 0, 0xCF65_B03E),
            (1, 2_654_435_761, 0xB454_5AA4),
            (14, 0, 0x1208_E7E2),
            (14, 2_654_435_761, 0x6AF1_D1FE),
            (222, 0, 0x5BD1_1DBD),
            (222, 2_654_435_761, 0x5880_3C5F),
        ] {
            assert_eq!(xxh32(&buffer[..bytes], seed), hash, "{bytes} bytes, seed {seed}");
        }
    }

    #[test]
    fn of_a_word_is_that_of_its_bytes() {
        for value in [0, 1, 0xDEAD_BEEF, u32::MAX] {
            assert_eq!(xxh32_of_word(value, 77), xxh32(&value.to_le_bytes(), 77));
        }
    }

    #[test]
    fn equals_well_known_values() {
        assert_eq!(xxh32(b"a", 0), 0x550D_7456);
        assert_eq!(xxh32(b"abc", 0), 0x32D1_53FF);
        assert_eq!(xxh32(b"Nobody inspects the spammish repetition", 0), 0xE229_3B2F);
    }
}
