//! Chooses among a cell's candidates. Home, the owner of the key's slot, takes the request unless it may not or should
//! not; then the other engines of the ring in weighted rendezvous order, then the reserves in theirs. The first candidate
//! that is fine takes it. If none is, the least wrong does: over its bound before penalised before cooling before out by
//! probes alone. An engine that is out, draining, tried, or unable to serve the body never does.
//!
//! The twin of `packages/selector/src/pick.ts`: the same arithmetic in the same order.

use std::ops::Range;

use crate::draw::{rendezvous_score, stays_under_factor};
use crate::seam::{Reason, Status, TRIED_MAX, head, state};
use crate::state::SharedState;
use crate::table::{Candidate, Cell};

/// What one request asks of its engine.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub head_words: &'a [u32; head::WORDS],
    /// Bits of needs that the body uses.
    pub needs: u32,
    pub context_tokens: u32,
    pub hash: u32,
    pub hash2: u32,
}

/// Indices into the cell's candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pick {
    pub slot: Option<u32>,
    pub home: Option<usize>,
    pub second: Option<usize>,
    /// The engine that takes the request, and why it.
    pub taker: Option<(usize, Reason)>,
}

/// `scores` has room for each candidate; what it holds before does not matter.
pub fn pick(
    cell: &Cell,
    shared: &impl SharedState,
    request: &Request,
    scores: &mut [(f64, Verdict)],
) -> (Pick, Status) {
    Picker { cell, shared, request, bound: None, least_wrong: [None; 4], any_eligible: false }.run(scores)
}

/// What speaks against a candidate, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    Take,
    Over,
    Penalised,
    Cooling,
    Probe,
    Out,
    Never,
}

/// So many streams are never too many.
const FREE_STREAMS: u32 = 4;
const BOUND: f64 = 2.0;
const NO_LIMIT: u32 = u32::MAX;

struct Picker<'a, S> {
    cell: &'a Cell,
    shared: &'a S,
    request: &'a Request<'a>,
    bound: Option<Bound>,
    /// The first candidate seen that is over, penalised, cooling, out by probes.
    least_wrong: [Option<usize>; 4],
    any_eligible: bool,
}

#[derive(Clone, Copy)]
struct Bound {
    cell_streams: f64,
    live_parts: f64,
    reserves_only: bool,
}

impl<S: SharedState> Picker<'_, S> {
    fn run(mut self, scores: &mut [(f64, Verdict)]) -> (Pick, Status) {
        let Cell { ring, candidates, engines, .. } = self.cell;
        let mut found = Pick::default();
        let mut home_verdict = Verdict::Never;
        let mut taker = None;
        if ring.is_empty() {
            found.home = self.least_score();
        } else {
            // The top bits: the number of slots is a power of two.
            let slot = (u64::from(self.request.hash) * ring.len() as u64) >> 32;
            found.slot = Some(slot as u32);
            found.home = Some(usize::from(ring[slot as usize]));
        }
        if let Some(home) = found.home {
            let verdict = self.verdict(home);
            home_verdict = self.visit(home, verdict);
            taker = (home_verdict == Verdict::Take).then_some(home);
        }
        taker = taker.or_else(|| self.walk(0..*engines, &mut found, scores));
        taker = taker.or_else(|| self.walk(*engines..candidates.len(), &mut found, scores));
        let [over, penalised, cooling, probe] = self.least_wrong;
        let is_fail_open = taker.or(over).or(penalised).or(cooling).is_none();
        let Some(taker) = taker.or(over).or(penalised).or(cooling).or(probe) else {
            return (found, if self.any_eligible { Status::Exhausted } else { Status::NoEligibleEngine });
        };
        let reason = if is_fail_open {
            Reason::FailOpen
        } else if self.request.head_words[head::TRIED_COUNT] > 0 {
            Reason::Retry
        } else if ring.is_empty() {
            Reason::Bootstrap
        } else if taker >= *engines {
            Reason::Reserve
        } else if Some(taker) == found.home {
            Reason::Home
        } else {
            instead_of(home_verdict)
        };
        found.taker = Some((taker, reason));
        (found, Status::Ok)
    }

    /// Visits candidates of `range`, but home, in rendezvous order, until one is fine.
    fn walk(&mut self, range: Range<usize>, found: &mut Pick, scores: &mut [(f64, Verdict)]) -> Option<usize> {
        for index in range.clone() {
            scores[index] = (f64::INFINITY, Verdict::Never);
            if Some(index) == found.home || !is_positive(self.cell.candidates[index].weight) {
                continue;
            }
            // One that can't be chosen needs no score, only to be known as one that could have served.
            let verdict = self.verdict(index);
            if verdict < Verdict::Out {
                scores[index] = (self.score(&self.cell.candidates[index]), verdict);
            }
        }
        loop {
            let mut next = None;
            let mut least = f64::INFINITY;
            for index in range.clone() {
                if scores[index].0 < least {
                    least = scores[index].0;
                    next = Some(index);
                }
            }
            let next = next?;
            let verdict = scores[next].1;
            scores[next].0 = f64::INFINITY;
            found.second = found.second.or(Some(next));
            if self.visit(next, verdict) == Verdict::Take {
                return Some(next);
            }
        }
    }

    /// Of the ring's engines the one with the least score, whatever its state: home where there is no ring.
    fn least_score(&self) -> Option<usize> {
        let mut home = None;
        let mut least = f64::INFINITY;
        for (index, candidate) in self.cell.candidates[..self.cell.engines].iter().enumerate() {
            if !is_positive(candidate.weight) {
                continue;
            }
            let score = self.score(candidate);
            if score < least {
                least = score;
                home = Some(index);
            }
        }
        home
    }

    fn score(&self, candidate: &Candidate) -> f64 {
        rendezvous_score(self.request.hash2, candidate.id_hash, candidate.weight)
    }

    /// The verdict with the bound; a candidate that is not fine is remembered, the first of its kind.
    fn visit(&mut self, index: usize, verdict: Verdict) -> Verdict {
        let verdict = if verdict == Verdict::Take && self.is_over(index) { Verdict::Over } else { verdict };
        let kind = match verdict {
            Verdict::Over => 0,
            Verdict::Penalised => 1,
            Verdict::Cooling => 2,
            Verdict::Probe => 3,
            Verdict::Take | Verdict::Out | Verdict::Never => return verdict,
        };
        self.least_wrong[kind] = self.least_wrong[kind].or(Some(index));
        verdict
    }

    /// All but the bound.
    fn verdict(&mut self, index: usize) -> Verdict {
        let candidate = &self.cell.candidates[index];
        let Request { head_words, needs, context_tokens, hash2, .. } = *self.request;
        if candidate.lacks & needs != 0 {
            return Verdict::Never;
        }
        let most = candidate.max_context_tokens;
        // The context is an estimate, so half as much again is let through.
        if most != NO_LIMIT && u64::from(context_tokens) * 2 > u64::from(most) * 3 {
            return Verdict::Never;
        }
        let residency = head_words[head::RESIDENCY];
        if residency != 0 && candidate.residency != residency {
            return Verdict::Never;
        }
        self.any_eligible = true;

        let tried = (head_words[head::TRIED_COUNT] as usize).min(TRIED_MAX);
        if head_words[head::TRIED..head::TRIED + tried].contains(&candidate.slot) {
            return Verdict::Never;
        }
        let word = self.shared.engine(candidate.slot as usize);
        if word & (state::OUT | state::DRAINING) != 0 {
            Verdict::Out
        } else if word & state::OUT_BY_PROBE != 0 {
            Verdict::Probe
        } else if word & state::COOLING != 0 {
            Verdict::Cooling
        } else if !stays_under_factor(hash2, candidate.id_hash, word & state::FACTOR_MASK) {
            Verdict::Penalised
        } else {
            Verdict::Take
        }
    }

    /// Streams > max(4, 2 × its part of the cell's streams). Parts are of the engines of the ring that are not out; when
    /// all are, of the reserves.
    fn is_over(&mut self, index: usize) -> bool {
        let candidate = &self.cell.candidates[index];
        let streams = self.streams(candidate);
        if streams <= FREE_STREAMS {
            return false;
        }
        let bound = match self.bound {
            Some(bound) => bound,
            None => *self.bound.insert(self.find_bound()),
        };
        let part = if index < self.cell.engines || bound.reserves_only { candidate.part } else { 0.0 };
        f64::from(streams) * bound.live_parts > BOUND * part * bound.cell_streams
    }

    fn find_bound(&self) -> Bound {
        let Cell { candidates, engines, .. } = self.cell;
        let mut cell_streams = 0.0;
        for candidate in candidates {
            cell_streams += f64::from(self.streams(candidate));
        }
        let live_parts = self.live_parts(&candidates[..*engines]);
        if live_parts > 0.0 {
            return Bound { cell_streams, live_parts, reserves_only: false };
        }
        Bound { cell_streams, live_parts: self.live_parts(&candidates[*engines..]), reserves_only: true }
    }

    fn live_parts(&self, candidates: &[Candidate]) -> f64 {
        let mut sum = 0.0;
        for candidate in candidates {
            let word = self.shared.engine(candidate.slot as usize);
            if word & (state::OUT | state::DRAINING | state::OUT_BY_PROBE) == 0 {
                sum += candidate.part;
            }
        }
        sum
    }

    fn streams(&self, candidate: &Candidate) -> u32 {
        self.shared.in_flight(self.cell.in_flight_row, candidate.slot as usize)
    }
}

/// Also false for NaN.
fn is_positive(weight: f64) -> bool {
    weight > 0.0
}

/// Why another than home took it. Home unable to serve this body is no fault: the next one is `second`.
fn instead_of(home: Verdict) -> Reason {
    match home {
        Verdict::Take => Reason::Home,
        Verdict::Over => Reason::Bounded,
        Verdict::Penalised => Reason::Penalised,
        Verdict::Cooling => Reason::Cooled,
        Verdict::Probe | Verdict::Out => Reason::Ejected,
        Verdict::Never => Reason::Second,
    }
}
