//! By the streams that engines have: the bound, where a conversation begins, and where it stays.

use crate::fleet::{HEALTHY, atomics, fleet};
use guidevane_core::seam::{Status, head, out, state};
use guidevane_core::xxh32::xxh32_of_word;

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
