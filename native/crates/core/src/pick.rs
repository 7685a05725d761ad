//! Chooses among a cell's candidates. The engine that a request is known to belong to comes first: the one that holds the
//! response it goes on from, or the one that its conversation was moved to. Then home, the owner of the key's slot; then
//! the other engines of the ring in weighted rendezvous order, then the reserves in theirs. The first candidate that is
//! fine takes it. If none is, the least wrong does: over its bound before penalised before cooling before out by probes
//! alone. An engine that is out, draining, tried, or unable to serve the body never does.
//!
//! With placement on, a conversation's first request goes to home or to the next candidate that is fine, whichever has
//! fewer streams for its part. What that choice or the bound moves is remembered; what is moved because an engine is out,
//! draining, cooling or penalised is not, and comes home.
//!
//! The twin of `packages/selector/src/pick.ts`: the same arithmetic in the same order.

use std::ops::Range;

use crate::bound::{Bound, LiveParts};
use crate::draw::{rendezvous_draw, rendezvous_score, stays_under_factor, surely_scores_above};
use crate::moves;
use crate::seam::{Reason, Status, TRIED_MAX, head, state};
use crate::state::SharedState;
use crate::table::Cell;

/// What one request asks of its engine.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub head_words: &'a [u32; head::WORDS],
    /// Bits of needs that the body uses.
    pub needs: u32,
    pub context_tokens: u32,
    pub has_key: bool,
    pub hash: u32,
    pub hash2: u32,
    pub is_first: bool,
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

pub fn pick(cell: &Cell, shared: SharedState, live: &mut LiveParts, request: &Request) -> (Pick, Status) {
    let bound = Bound::new(cell, shared, live);
    Picker { cell, shared, request, bound, least_wrong: [None; 4], any_eligible: false }.run()
}

/// What speaks against a candidate, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Take,
    Over,
    Penalised,
    Cooling,
    Probe,
    Out,
    Never,
}

impl Verdict {
    /// Its place in `least_wrong`.
    fn kind(self) -> Option<usize> {
        match self {
            Self::Over => Some(0),
            Self::Penalised => Some(1),
            Self::Cooling => Some(2),
            Self::Probe => Some(3),
            Self::Take | Self::Out | Self::Never => None,
        }
    }
}

const NO_LIMIT: u32 = u32::MAX;

struct Picker<'a> {
    cell: &'a Cell,
    shared: SharedState<'a>,
    request: &'a Request<'a>,
    bound: Bound<'a>,
    /// The first candidate seen that is over, penalised, cooling, out by probes.
    least_wrong: [Option<usize>; 4],
    any_eligible: bool,
}

impl Picker<'_> {
    fn run(mut self) -> (Pick, Status) {
        let Cell { ring, candidates, engines, .. } = self.cell;
        let Request { head_words, has_key, hash, hash2, is_first, .. } = *self.request;
        let mut found = Pick::default();
        if ring.is_empty() {
            found.home = self.least_score();
        } else {
            // The top bits: the number of slots is a power of two.
            let slot = (u64::from(hash) * ring.len() as u64) >> 32;
            found.slot = Some(slot as u32);
            found.home = Some(usize::from(ring[slot as usize]));
        }

        let mut known = None;
        let mut verdict = Verdict::Never;
        let mut moved = None;
        if let Some(followed) = head_words[head::FOLLOWED].checked_sub(1) {
            known = self.candidate_of(followed, 0.0);
            verdict = known.map_or(Verdict::Never, |known| self.verdict(known));
            // What it holds is nowhere else, whatever its share and its load.
            if verdict == Verdict::Penalised {
                verdict = Verdict::Take;
            }
            if verdict != Verdict::Take {
                known = None;
            }
        } else if has_key {
            let row = self.cell.in_flight_row as u32;
            let (entry, slot) = moves::find(self.shared.moves(), hash, hash2, row, head_words[head::NOW_S]);
            known = slot.and_then(|slot| self.candidate_of(slot, f64::MIN_POSITIVE));
            known = known.filter(|&known| Some(known) != found.home);
            if let Some(known) = known {
                verdict = self.visit(known);
            }
            moved = Some(entry);
        }
        let is_first_choice = head_words[head::TRIED_COUNT] == 0;
        let mut taker = known.filter(|_| verdict == Verdict::Take);
        if let (Some(_), Some(entry)) = (taker, &moved) {
            entry.touch();
        }

        let mut home_verdict = Verdict::Never;
        let mut is_chosen = false;
        if let (None, Some(home)) = (taker, found.home) {
            home_verdict = self.visit(home);
            if home_verdict == Verdict::Take {
                taker = Some(home);
                let places = head_words[head::PLACEMENT] == 1 && is_first && moved.is_some() && is_first_choice;
                if places && verdict != Verdict::Over {
                    let second = self.walk(0..*engines, &mut found);
                    if let Some(second) = second.filter(|&second| self.bound.has_fewer(second, home)) {
                        is_chosen = true;
                        taker = Some(second);
                    }
                }
            }
        }
        taker = taker.or_else(|| self.walk(0..*engines, &mut found));
        taker = taker.or_else(|| self.walk(*engines..candidates.len(), &mut found));

        let is_fine = taker.is_some();
        let [over, penalised, cooling, probe] = self.least_wrong;
        let Some(taker) = taker.or(over).or(penalised).or(cooling).or(probe) else {
            return (found, if self.any_eligible { Status::Exhausted } else { Status::NoEligibleEngine });
        };

        let is_bounded = verdict == Verdict::Over || home_verdict == Verdict::Over;
        if let Some(entry) = moved
            && is_fine
            && is_first_choice
            && Some(taker) != known
            && (is_chosen || is_bounded)
        {
            if Some(taker) == found.home { entry.forget() } else { entry.remember(candidates[taker].slot) }
        }

        let reason = if !is_fine && Some(taker) == probe {
            Reason::FailOpen
        } else if !is_first_choice {
            Reason::Retry
        } else if Some(taker) == known {
            Reason::Followed
        } else if ring.is_empty() {
            Reason::Bootstrap
        } else if taker >= *engines {
            Reason::Reserve
        } else if Some(taker) == found.home {
            Reason::Home
        } else if is_chosen {
            Reason::Second
        } else if verdict == Verdict::Over {
            Reason::Bounded
        } else {
            instead_of(home_verdict)
        };
        found.taker = Some((taker, reason));
        (found, Status::Ok)
    }

    /// Of candidates of `range`, but home, the one with the least score that is fine. In one pass: those that score above
    /// the best found so far are neither it nor second, and need no more than a draw. Where none is fine, the first of
    /// each kind is remembered.
    fn walk(&mut self, range: Range<usize>, found: &mut Pick) -> Option<usize> {
        let hash2 = self.request.hash2;
        let cell = self.cell;
        let mut best = (f64::INFINITY, None);
        let mut wrong = [(f64::INFINITY, None); 4];
        for start in range.clone().step_by(BLOCK) {
            let block = start..range.end.min(start + BLOCK);
            let mut draws = [0; BLOCK];
            for (draw, &id_hash) in draws.iter_mut().zip(&cell.id_hashes[block.clone()]) {
                *draw = rendezvous_draw(hash2, id_hash);
            }
            // Of most blocks none comes near the best, which is told of all of them at once.
            let near = draws.iter().zip(&cell.weights[block.clone()]);
            if !near.fold(false, |any, (&draw, &weight)| any | !surely_scores_above(draw, weight, best.0)) {
                continue;
            }
            for (index, draw) in block.zip(draws) {
                let weight = cell.weights[index];
                if surely_scores_above(draw, weight, best.0) || !is_positive(weight) || Some(index) == found.home {
                    continue;
                }
                let mut verdict = self.verdict(index);
                if verdict >= Verdict::Out {
                    continue;
                }
                let score = rendezvous_score(draw, weight);
                if score.partial_cmp(&best.0) != Some(std::cmp::Ordering::Less) {
                    continue;
                }
                if verdict == Verdict::Take && self.bound.is_over(index) {
                    verdict = Verdict::Over;
                }
                let place = verdict.kind().map_or(&mut best, |kind| &mut wrong[kind]);
                if score < place.0 {
                    *place = (score, Some(index));
                }
            }
        }
        let mut second = best;
        for (kind, first) in wrong.into_iter().zip(&mut self.least_wrong) {
            if kind.0 < second.0 {
                second = kind;
            }
            *first = first.or(kind.1);
        }
        found.second = found.second.or(second.1);
        best.1
    }

    /// Of the ring's engines the one with the least score, whatever its state: home where there is no ring.
    fn least_score(&self) -> Option<usize> {
        let mut home = None;
        let mut least = f64::INFINITY;
        for (index, candidate) in self.cell.candidates[..self.cell.engines].iter().enumerate() {
            let draw = rendezvous_draw(self.request.hash2, candidate.id_hash);
            if !is_positive(candidate.weight) || surely_scores_above(draw, candidate.weight, least) {
                continue;
            }
            let score = rendezvous_score(draw, candidate.weight);
            if score < least {
                least = score;
                home = Some(index);
            }
        }
        home
    }

    /// The candidate that is the engine of a state slot. `least`: the weight that it must have.
    fn candidate_of(&self, slot: u32, least: f64) -> Option<usize> {
        self.cell.candidates.iter().position(|candidate| candidate.slot == slot && candidate.weight >= least)
    }

    /// The verdict with the bound; a candidate that is not fine is remembered, the first of its kind.
    fn visit(&mut self, index: usize) -> Verdict {
        let mut verdict = self.verdict(index);
        if verdict == Verdict::Take && self.bound.is_over(index) {
            verdict = Verdict::Over;
        }
        if let Some(kind) = verdict.kind() {
            self.least_wrong[kind] = self.least_wrong[kind].or(Some(index));
        }
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
        let factor = word & state::FACTOR_MASK;
        if word & (state::OUT | state::DRAINING) != 0 {
            Verdict::Out
        } else if word & state::OUT_BY_PROBE != 0 {
            Verdict::Probe
        } else if word & state::COOLING != 0 {
            Verdict::Cooling
        } else if factor == state::FACTOR_MASK || stays_under_factor(hash2, candidate.id_hash, factor) {
            Verdict::Take
        } else {
            Verdict::Penalised
        }
    }
}

/// Draws are made so many at a time, which the compiler does several to an instruction.
const BLOCK: usize = 16;

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
