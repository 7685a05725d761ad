//! A fleet of one class to route requests in.

use guidevane_core::route::{Scratch, route};
use guidevane_core::seam::{Status, head, out, state};
use guidevane_core::state::SharedState;
use guidevane_core::table::{Columns, Table};
use guidevane_core::xxh32::xxh32;
use std::sync::atomic::{AtomicU32, Ordering};

pub const HEALTHY: u32 = state::FACTOR_MASK;

pub struct Fleet {
    table: Table,
    scratch: Scratch,
    engines: Vec<AtomicU32>,
    version: [AtomicU32; 1],
    /// One row: a count per engine, and their sum.
    streams: Vec<AtomicU32>,
    moves: Vec<AtomicU32>,
    pub head: [u32; head::WORDS],
    pub found: [u32; out::WORDS],
}

/// One model `m`, one class, one cell; engine i has state slot i, id hash `id(i)` and the weight given, and owns as many of
/// the ring's slots; then the reserves.
pub fn columns(weights: &[u16], reserves: &[f64], has_ring: bool) -> (Vec<u32>, Vec<f64>, Vec<u16>) {
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

pub fn id(engine: usize) -> u32 {
    xxh32(format!("engine-{engine}").as_bytes(), 0)
}

pub fn fleet(weights: &[u16], reserves: &[f64]) -> Fleet {
    fleet_with(weights, reserves, true)
}

pub fn fleet_with(weights: &[u16], reserves: &[f64], has_ring: bool) -> Fleet {
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

pub fn atomics(count: usize, word: u32) -> Vec<AtomicU32> {
    (0..count).map(|_| AtomicU32::new(word)).collect()
}

impl Fleet {
    pub fn set(&self, engine: usize, word: u32) {
        self.engines[engine].store(word, Ordering::Relaxed);
        self.version[0].fetch_add(1, Ordering::Relaxed);
    }

    pub fn set_all(&self, word: u32) {
        (0..self.engines.len()).for_each(|engine| self.set(engine, word));
    }

    pub fn set_streams(&self, engine: usize, streams: u32) {
        let before = self.streams[engine].swap(streams, Ordering::Relaxed);
        self.streams[self.engines.len()].fetch_add(streams.wrapping_sub(before), Ordering::Relaxed);
    }

    pub fn route(&mut self, key: &str, body: &[u8]) -> Status {
        self.head[head::SESSION_KEY_BYTES] = key.len() as u32;
        let shared = SharedState::new(&self.engines, &self.version, &self.streams, &self.moves, 1).unwrap();
        route(&self.table, shared, &mut self.scratch, &self.head, key.as_bytes(), body, &mut self.found)
    }

    pub fn engine(&mut self, key: usize) -> usize {
        assert_eq!(self.route(&format!("key-{key}"), br#"{"model":"m"}"#), Status::Ok);
        self.found[out::ENGINE] as usize
    }

    pub fn reason(&self) -> &'static str {
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
