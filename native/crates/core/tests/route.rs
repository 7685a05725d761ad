//! Which engine takes a request: the ring, the order behind it, the reserves, the bound, and what keeps an engine out.

use guidevane_core::route::{Scratch, route};
use guidevane_core::seam::{NONE, Status, head, out, path, state};
use guidevane_core::state::SharedState;
use guidevane_core::table::{Columns, Table};
use guidevane_core::xxh32::{xxh32, xxh32_of_word};
use std::sync::atomic::{AtomicU32, Ordering};

const HEALTHY: u32 = state::FACTOR_MASK;

struct Fleet {
    table: Table,
    scratch: Scratch,
    engines: Vec<AtomicU32>,
    version: [AtomicU32; 1],
    /// One row: a count per engine, and their sum.
    streams: Vec<AtomicU32>,
    moves: Vec<AtomicU32>,
    head: [u32; head::WORDS],
    found: [u32; out::WORDS],
}

/// One model `m`, one class, one cell; engine i has state slot i, id hash `id(i)` and the weight given, and owns as many of
/// the ring's slots; then the reserves.
fn columns(weights: &[u16], reserves: &[f64], has_ring: bool) -> (Vec<u32>, Vec<f64>, Vec<u16>) {
    let engines = weights.len() as u32;
    let mut words = vec![1, 0, 1, 0, 1, 0, 1];
    let mut numbers = Vec::new();
    let all = weights.iter().map(|&weight| f64::from(weight)).chain(reserves.iter().copied());
    for (slot, weight) in all.enumerate() {
        words.extend([slot as u32, id(slot), 0, u32::MAX, 0]);
        numbers.extend([weight, weight]);
    }
    let owned = |(owner, &slots): (usize, &u16)| std::iter::repeat_n(owner as u16, slots.into());
    let ring: Vec<u16> = if has_ring { weights.iter().enumerate().flat_map(owned).collect() } else { Vec::new() };
    let cell = words.len() as u32;
    words.extend([5, 0, 0, ring.len() as u32, 7, 0, engines, reserves.len() as u32, 0]);
    words[3] = words.len() as u32;
    words.extend([0, 0, 0, 0, cell]);
    let list = words.len() as u32;
    words.push(0);
    words[1] = words.len() as u32;
    words.extend([list, 1]);
    words[5] = words.len() as u32;
    words.extend([0, 1, 0]);
    (words, numbers, ring)
}

fn id(engine: usize) -> u32 {
    xxh32(format!("engine-{engine}").as_bytes(), 0)
}

fn fleet(weights: &[u16], reserves: &[f64]) -> Fleet {
    fleet_with(weights, reserves, true)
}

fn fleet_with(weights: &[u16], reserves: &[f64], has_ring: bool) -> Fleet {
    let (words, numbers, ring) = columns(weights, reserves, has_ring);
    let count = weights.len() + reserves.len();
    let columns = Columns { words: &words, numbers: &numbers, ring: &ring, names: b"m" };
    let table = Table::read(&columns, count, 1).unwrap();
    Fleet {
        scratch: Scratch::for_table(&table),
        table,
        engines: atomics(count, HEALTHY),
        version: [AtomicU32::new(0)],
        streams: atomics(count + 1, 0),
        moves: atomics(16, 0),
        head: [0; head::WORDS],
        found: [0; out::WORDS],
    }
}

fn atomics(count: usize, word: u32) -> Vec<AtomicU32> {
    (0..count).map(|_| AtomicU32::new(word)).collect()
}

impl Fleet {
    fn set(&self, engine: usize, word: u32) {
        self.engines[engine].store(word, Ordering::Relaxed);
        self.version[0].fetch_add(1, Ordering::Relaxed);
    }

    fn set_all(&self, word: u32) {
        (0..self.engines.len()).for_each(|engine| self.set(engine, word));
    }

    fn set_streams(&self, engine: usize, streams: u32) {
        let before = self.streams[engine].swap(streams, Ordering::Relaxed);
        self.streams[self.engines.len()].fetch_add(streams.wrapping_sub(before), Ordering::Relaxed);
    }

    fn route(&mut self, key: &str, body: &[u8]) -> Status {
        self.head[head::SESSION_KEY_BYTES] = key.len() as u32;
        let shared = SharedState::new(&self.engines, &self.version, &self.streams, &self.moves, 1).unwrap();
        route(&self.table, shared, &mut self.scratch, &self.head, key.as_bytes(), body, &mut self.found)
    }

    fn engine(&mut self, key: usize) -> usize {
        assert_eq!(self.route(&format!("key-{key}"), br#"{"model":"m"}"#), Status::Ok);
        self.found[out::ENGINE] as usize
    }

    fn reason(&self) -> &'static str {
        [
            "home",
            "second",
            "followed",
            "bounded",
            "penalised",
            "ejected",
            "cooled",
            "",
            "reserve",
            "retry",
            "fail-open",
            "bootstrap",
        ][self.found[out::REASON] as usize]
    }
}

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
fn an_engine_over_its_bound_is_passed_over_unless_it_is_alone() {
    let mut fleet = fleet(&[8, 8], &[]);
    let home = fleet.engine(1);
    let other = 1 - home;
    // Its part is half: over means more than max(4, 2 · ½ · all).
    for (streams, elsewhere, takes) in [(4, 0, home), (5, 0, home), (90, 1, home), (5, 5, home)] {
        fleet.set_streams(home, streams);
        fleet.set_streams(other, elsewhere);
        assert_eq!(fleet.engine(1), takes, "{streams} and {elsewhere}");
    }
    let mut uneven = self::fleet(&[1, 15], &[]);
    let key = (0..).find(|&key| uneven.engine(key) == 0).unwrap();
    // Its part is 1/16: of 400 streams 25, and over means more than 50; of 44 streams 2.75, and 2.75 + 4 · √2.75 = 9.4.
    for (streams, elsewhere, takes, reason) in
        [(50, 350, 0, "home"), (9, 35, 0, "home"), (4, 0, 0, "home"), (10, 34, 1, "bounded"), (4, 0, 1, "followed")]
    {
        uneven.set_streams(0, streams);
        uneven.set_streams(1, elsewhere);
        assert_eq!(uneven.engine(key), takes);
        assert_eq!(uneven.reason(), reason);
    }
    let key = (key + 1..).find(|&key| uneven.engine(key) == 0).unwrap();
    uneven.set_streams(0, 51);
    uneven.set_streams(1, 349);
    assert_eq!((uneven.engine(key), uneven.reason()), (1, "bounded"));
    uneven.set_streams(0, 500);
    uneven.set(1, HEALTHY | state::OUT);
    assert_eq!(uneven.engine(key), 0);
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

#[test]
fn a_conversation_that_the_bound_moved_stays_where_it_is_for_ten_minutes() {
    let mut fleet = fleet(&[6, 5, 5], &[]);
    let home = fleet.engine(1);
    fleet.set_streams(home, 100);
    let other = fleet.engine(1);
    assert_eq!(fleet.reason(), "bounded");
    fleet.set_streams(home, 0);
    for now_s in [1, 600, 1200] {
        fleet.head[head::NOW_S] = now_s;
        assert_eq!((fleet.engine(1), fleet.reason()), (other, "followed"));
    }
    fleet.head[head::NOW_S] = 1801;
    assert_eq!((fleet.engine(1), fleet.reason()), (home, "home"));
}

#[test]
fn a_first_request_goes_where_fewer_streams_are_and_the_next_ones_follow() {
    let mut fleet = fleet(&[8, 8], &[]);
    fleet.head[head::PLACEMENT] = 1;
    let first = br#"{"model":"m","messages":[{"role":"user","content":"u"}]}"#;
    let later = br#"{"model":"m","messages":[{"role":"user","content":"u"},{"role":"assistant"}]}"#;
    assert_eq!(fleet.route("", later), Status::Ok);
    let home = fleet.found[out::ENGINE];
    fleet.set_streams(home as usize, 2);
    assert_eq!(fleet.route("", first), Status::Ok);
    assert_eq!((fleet.found[out::ENGINE], fleet.reason()), (1 - home, "second"));
    fleet.set_streams(1 - home as usize, 4);
    for body in [&later[..], first] {
        assert_eq!(fleet.route("", body), Status::Ok);
        assert_eq!((fleet.found[out::ENGINE], fleet.reason()), (1 - home, "followed"));
    }
}

#[test]
fn threads_that_write_the_same_moves_find_what_one_of_them_wrote_or_nothing() {
    let moves = atomics(16 * 4, 0);
    let slot_of = |key: u32| xxh32_of_word(key, 5) % 1000;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let moves = &moves;
            scope.spawn(move || {
                let mut found = 0;
                for round in 0..200_000_u32 {
                    let key = xxh32_of_word(round, thread) % 64;
                    // The low half differs from key to key, so no entry is mistaken for another.
                    let (entry, slot) =
                        guidevane_core::moves::find(moves, key, key.wrapping_mul(0x9E37_79B1), 0, round / 1000);
                    match slot {
                        Some(slot) => {
                            assert_eq!(slot, slot_of(key));
                            found += 1;
                            if round % 7 == 0 { entry.forget() } else { entry.touch() }
                        }
                        None => entry.remember(slot_of(key)),
                    }
                }
                assert!(found > 1000, "{found}");
            });
        }
    });
}
