//! By its key, by what keeps engines out, and by what a request and a table say.

use crate::fleet::{HEALTHY, columns, fleet, fleet_with, id};
use guidevane_core::route::{Scratch, route};
use guidevane_core::seam::{NONE, Status, head, out, path, state};
use guidevane_core::state::SharedState;
use guidevane_core::table::{Columns, Table};
use guidevane_core::xxh32::{xxh32, xxh32_of_word};
use std::sync::atomic::AtomicU32;

#[test]
fn a_key_belongs_to_the_owner_of_the_slot_of_its_published_hash() {
    let mut fleet = fleet(&[4, 4, 4, 4], &[]);
    assert_eq!(fleet.route("Nobody inspects the spammish repetition", br#"{"model":"m"}"#), Status::Ok);
    assert_eq!(fleet.found[out::KEY_HASH], 0xE229_3B2F);
    assert_eq!(fleet.found[out::SLOT], 0xE);
    assert_eq!(fleet.found[out::ENGINE], 0xE / 4);
    assert_eq!(fleet.found[out::HOME], fleet.found[out::ENGINE]);
    assert_eq!(fleet.reason(), "home");
}

#[test]
fn an_ejected_engine_moves_its_own_keys_only_and_gets_them_all_back() {
    let mut fleet = fleet(&[8, 4, 2, 2], &[]);
    let before: Vec<usize> = (0..20_000).map(|key| fleet.engine(key)).collect();
    fleet.set(1, HEALTHY | state::OUT);
    let mut got = [0_u32; 4];
    for (key, &home) in before.iter().enumerate() {
        let engine = fleet.engine(key);
        if home == 1 {
            got[engine] += 1;
            assert_eq!(fleet.reason(), "ejected");
            assert_eq!(fleet.found[out::SECOND] as usize, engine);
        } else {
            assert_eq!(engine, home);
        }
    }
    // Its keys spread by weight: 8 : 2 : 2, each within five standard deviations.
    let moved = f64::from(got.iter().sum::<u32>());
    for (engine, part) in [(0, 8.0 / 12.0), (1, 0.0), (2, 2.0 / 12.0), (3, 2.0 / 12.0)] {
        let within = 5.0 * (moved * part * (1.0 - part)).sqrt();
        assert!((f64::from(got[engine]) - moved * part).abs() <= within, "{got:?}");
    }
    fleet.set(1, HEALTHY);
    assert!(before.iter().enumerate().all(|(key, &home)| fleet.engine(key) == home));
}

#[test]
fn candidates_follow_in_the_order_of_their_rendezvous_scores() {
    let weights = [5, 3, 4, 1, 3];
    let mut fleet = fleet(&weights, &[]);
    for key in 0..2_000 {
        let home = fleet.engine(key);
        let hash2 = fleet.found[out::KEY_HASH_2];
        // The platform's own logarithm: apart from ours in the last bit only.
        let score = |engine: usize| {
            let u = (f64::from(xxh32_of_word(hash2, id(engine))) + 0.5) / 4_294_967_296.0;
            -u.ln() / f64::from(weights[engine])
        };
        let mut order: Vec<usize> = (0..weights.len()).filter(|&engine| engine != home).collect();
        order.sort_by(|&a, &b| score(a).total_cmp(&score(b)));
        let mut gone = home;
        for next in order {
            fleet.set(gone, HEALTHY | state::OUT);
            assert_eq!(fleet.engine(key), next);
            gone = next;
        }
        fleet.set_all(HEALTHY);
    }
}

#[test]
fn reserves_serve_only_when_the_whole_ring_is_out_and_by_their_spare_capacity() {
    let mut fleet = fleet(&[12, 4, 0], &[3.0, 1.0]);
    assert!((0..2_000).all(|key| fleet.engine(key) < 2));
    fleet.set(0, HEALTHY | state::OUT);
    assert!((0..2_000).all(|key| fleet.engine(key) == 1));
    fleet.set(1, HEALTHY | state::DRAINING);
    let mut got = [0_u32; 5];
    for key in 0..20_000 {
        got[fleet.engine(key)] += 1;
        assert_eq!(fleet.reason(), "reserve");
    }
    assert_eq!(got[..3], [0, 0, 0]);
    assert!((f64::from(got[3]) - 15_000.0).abs() < 5.0 * 3_750_f64.sqrt(), "{got:?}");
}

#[test]
fn a_penalised_engine_keeps_its_factor_of_its_keys() {
    let mut fleet = fleet(&[16, 16], &[]);
    let mine: Vec<usize> = (0..20_000).filter(|&key| fleet.engine(key) == 0).collect();
    fleet.set(0, 65_535 / 4);
    let kept = mine.iter().filter(|&&key| fleet.engine(key) == 0).count();
    let part = kept as f64 / mine.len() as f64;
    assert!((part - 0.25).abs() < 5.0 * (0.25 * 0.75 / mine.len() as f64).sqrt(), "{part}");
    fleet.set(0, 0);
    assert!(mine.iter().all(|&key| fleet.engine(key) == 1));
    assert_eq!(fleet.reason(), "penalised");
}

#[test]
fn the_least_wrong_serves_when_none_is_fine() {
    let mut fleet = fleet(&[8, 8], &[]);
    let home = fleet.engine(1);
    let other = 1 - home;
    fleet.set(home, HEALTHY | state::OUT_BY_PROBE);
    fleet.set(other, HEALTHY | state::COOLING);
    assert_eq!(fleet.engine(1), other);
    assert_eq!(fleet.reason(), "ejected");
    fleet.set(other, HEALTHY | state::OUT_BY_PROBE);
    assert_eq!(fleet.engine(1), home);
    assert_eq!(fleet.reason(), "fail-open");
    fleet.set_all(HEALTHY | state::OUT);
    assert_eq!(fleet.route("k", b"{}"), Status::Exhausted);
    assert_eq!(fleet.found[out::ENGINE], NONE);
}

#[test]
fn an_engine_tried_is_not_tried_again() {
    let mut fleet = fleet(&[8, 8], &[]);
    let home = fleet.engine(1);
    fleet.head[head::TRIED_COUNT] = 1;
    fleet.head[head::TRIED] = home as u32;
    assert_eq!(fleet.engine(1), 1 - home);
    assert_eq!(fleet.reason(), "retry");
    fleet.head[head::TRIED_COUNT] = 2;
    fleet.head[head::TRIED + 1] = 1 - home as u32;
    assert_eq!(fleet.route("key-1", b"{}"), Status::Exhausted);
}

#[test]
fn without_a_ring_keys_spread_by_weight() {
    let mut fleet = fleet_with(&[3, 1], &[], false);
    let mut got = [0_u32; 2];
    for key in 0..20_000 {
        got[fleet.engine(key)] += 1;
        assert_eq!((fleet.reason(), fleet.found[out::SLOT]), ("bootstrap", NONE));
    }
    assert!((f64::from(got[0]) - 15_000.0).abs() < 5.0 * 3_750_f64.sqrt(), "{got:?}");
}

#[test]
fn a_model_that_is_missing_or_unknown_ends_the_call() {
    let mut fleet = fleet(&[8], &[]);
    assert_eq!(fleet.route("k", br#"{"model":"n"}"#), Status::ModelNotFound);
    assert_eq!(fleet.found[out::REQUEST_CLASS], NONE);
    assert_eq!(fleet.route("k", b"{}"), Status::Ok);
    assert_eq!(fleet.route("k", br#"{"model":"m","model":"m"}"#), Status::AskTwin);
    assert_eq!(fleet.found[out::KEY_HASH], 3);
}

#[test]
fn one_key_of_two_tenants_is_two_keys_and_appended_turns_change_none() {
    let mut fleet = fleet(&[16], &[]);
    let first = br#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"}]}"#;
    let later = br#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":"a"}]}"#;
    fleet.head[head::PATH] = path::CHAT;
    let mut hash = |tenant: u32, body: &[u8]| {
        fleet.head[head::TENANT] = tenant;
        assert_eq!(fleet.route("", body), Status::Ok);
        (fleet.found[out::KEY_HASH], fleet.found[out::KEY_HASH_2], fleet.found[out::FIRST])
    };
    let (one, two) = (hash(0, first), hash(77, first));
    assert_ne!(one.0, two.0);
    let continued = hash(0, later);
    assert_eq!((continued.0, continued.1), (one.0, one.1));
    assert_eq!((one.2, continued.2), (1, 0));
    // Chained: the system message's hash is the seed of the user message's.
    assert_eq!(one.0, xxh32(b"\"u\"", xxh32(b"\"s\"", 0)));
}

#[test]
fn no_words_make_it_panic() {
    let mut state: u64 = 11;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    let edges = [0, 1, 2, 4, 5, 100, 0x7FFF_FFFF, u32::MAX - 1, u32::MAX];
    let mut read = 0;
    for _ in 0..20_000 {
        let (mut words, numbers, ring) = columns(&[3, 4, 1], &[2.0], next() % 4 != 0);
        for _ in 0..next() % 4 {
            let at = next() as usize % words.len();
            words[at] = if next() % 2 == 0 { edges[next() as usize % edges.len()] } else { next() % 50 };
        }
        let columns = Columns { words: &words, numbers: &numbers, ring: &ring, names: b"m" };
        let Ok(table) = Table::read(&columns, 4, 1) else { continue };
        read += 1;
        let mut scratch = Scratch::for_table(&table);
        let engines: Vec<AtomicU32> = (0..4).map(|_| AtomicU32::new(next())).collect();
        let streams: Vec<AtomicU32> = (0..5).map(|_| AtomicU32::new(next())).collect();
        let moves: Vec<AtomicU32> = (0..16).map(|_| AtomicU32::new(next())).collect();
        let head: [u32; head::WORDS] = std::array::from_fn(|_| if next() % 2 == 0 { next() % 4 } else { next() });
        let mut found = [0; out::WORDS];
        let version = [AtomicU32::new(0)];
        let shared = SharedState::new(&engines, &version, &streams, &moves, 1).unwrap();
        route(&table, shared, &mut scratch, &head, b"some key", br#"{"model":"m","prompt":"p"}"#, &mut found);
    }
    assert!(read > 5_000, "{read}");
}
