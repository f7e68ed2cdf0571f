//! Sources whose keys are wrong cost the others nothing.

use pollux_pipelines::Stage;
use pollux_pipelines::clocks::LIVE;
use pollux_pipelines::sources::Sources1024;
use pollux_pmd::Cause;

use crate::{DEADLINE, Fragment, SPACING, builder, dropped, feed, fragment};

/// When key `n` comes.
fn at(n: u64) -> u64 {
    5000 + n * SPACING
}

/// One of three is ahead for ever, by two deadlines: it closes nothing of the others, and is put off.
#[test]
fn a_source_that_is_ahead_closes_nothing_of_the_others() {
    let ahead = 2 * DEADLINE / SPACING;
    let mut builder = builder::<u16>(2000, 3, 1000);
    let mut out = Vec::new();
    for n in 0..1000 {
        let of = |source, key| fragment(key, source, at(n));
        feed(
            &mut builder,
            [of(0, n), of(1, n), of(2, n + ahead)],
            &mut out,
        );
    }
    builder.finish(&mut out);
    let shared = out.iter().filter(|event| event.shared);
    let keys: Vec<_> = shared.map(|event| event.key).collect();
    assert_eq!(keys, (0..1000).collect::<Vec<_>>());
    let balance = builder.tally().balance();
    assert!(dropped(&builder, Cause::ClockSkew) > 900, "{balance:?}");
    assert_eq!(balance.dropped_total(), dropped(&builder, Cause::ClockSkew));
}

/// One wrong key moves nothing; a majority that begins anew is followed, in another burst, and loses
/// nothing.
#[test]
fn keys_begin_anew_with_a_majority() {
    let mut builder = builder::<u64>(1000, 4, 100);
    let mut out = Vec::new();
    let all = |key: u64, n: u64| (0..4).map(move |source| fragment(key, source, at(n)));
    for n in 0..20 {
        let wrong = |key, source| fragment(key, source, at(n));
        if n > 0 {
            let two = [wrong(n | 1 << 40, 1), wrong(3, 2)];
            feed(&mut builder, two, &mut out);
        }
        feed(&mut builder, all(5000 + n, n), &mut out);
    }
    assert_eq!(out.len(), 20);
    assert!(out.iter().all(|event| event.complete && event.burst == 1));
    assert_eq!(builder.tally().balance().dropped_total(), 38);
    out.clear();
    for n in 0..10 {
        feed(&mut builder, all(n, 20 + n), &mut out);
    }
    builder.finish(&mut out);
    assert_eq!(builder.tally().balance().dropped_total(), 38);
    let built = out
        .iter()
        .map(|event| (event.burst, event.key, event.complete));
    let expected = (0..10).map(|key| (2, key, true));
    assert_eq!(built.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert_eq!(builder.gather().stats.restarts.get(), 1);
}

/// The same of a farm of a thousand sources, of which a third follows a little later.
#[test]
fn a_thousand_sources_begin_anew_with_a_majority() {
    let mut builder = builder::<Sources1024>(100, 1000, 64);
    let mut out = Vec::new();
    let mut fragments: Vec<_> = (0..40_u64)
        .flat_map(|n| (0..1000).map(move |source| (n, source)))
        .map(|(n, source)| {
            let delay = if source % 3 == 0 { SPACING / 2 } else { 0 };
            let key = if n < 20 { 70_000 + n } else { n };
            fragment(key, source, at(n) + delay)
        })
        .collect();
    fragments.sort_by_key(|fragment| fragment.at);
    feed(&mut builder, fragments, &mut out);
    builder.finish(&mut out);
    let keys: Vec<_> = out.iter().map(|event| event.key).collect();
    let expected = (70_000..70_020).chain(20..40);
    assert_eq!(keys, expected.collect::<Vec<_>>());
    for (n, event) in out.iter().enumerate() {
        assert!(
            event.complete && event.burst == if n < 20 { 1 } else { 2 },
            "{n}"
        );
    }
}

/// Without a majority the events of both are built, and marked, until one of them is silent.
#[test]
fn two_sources_that_differ_go_on_side_by_side() {
    let mut builder = builder::<u16>(30_000, 2, 1000);
    let mut out = Vec::new();
    let far = |n: u64| n + 1_000_000;
    for n in 0..1000 {
        let second = if n < 100 { n } else { far(n) };
        let both = [fragment(n, 0, at(n)), fragment(second, 1, at(n))];
        feed(&mut builder, both, &mut out);
    }
    let disputed = |out: &[crate::Built<u16>]| out.iter().filter(|event| event.disputed).count();
    assert!(disputed(&out) > 1000, "{}", disputed(&out));
    // The second one is silent: after a while it is waited for no more.
    let later = LIVE.0 / SPACING + 2000;
    let now_and_then = (1000..later).step_by(5000);
    for n in now_and_then.chain(later..later + 1000) {
        feed(&mut builder, [fragment(n, 0, at(n))], &mut out);
    }
    builder.finish(&mut out);
    assert!(out.last().is_some_and(|event| !event.disputed));
    let balance = builder.tally().balance();
    assert_eq!(balance.dropped_total(), 0, "{balance:?}");
    for (source, from) in [(0, 0), (1, far(100))] {
        let own = out.iter().filter(|event| event.sources >> source & 1 == 1);
        let keys: Vec<_> = own
            .map(|event| event.key)
            .filter(|&key| key >= from)
            .collect();
        assert!(keys.windows(2).all(|two| two[0] < two[1]));
        assert!(keys.len() >= 900);
    }
}

/// A frame is admitted or refused by its first fragment, and counted with its last one.
#[test]
fn a_frame_is_one_in_the_ledger() {
    let mut builder = builder::<u16>(100, 3, 100);
    let mut out = Vec::new();
    let frame = |first: u64, source, n| {
        let part = move |key| Fragment {
            goes_on: key + 1 < first + 5,
            ..fragment(key, source, at(n))
        };
        (first..first + 5).map(part)
    };
    for source in 0..3 {
        feed(&mut builder, frame(10, source, 0), &mut out);
    }
    assert_eq!(out.len(), 5);
    assert_eq!(builder.tally().balance().delivered, 3);
    // Half of it is there already: it is delivered, and two fragments are late.
    feed(&mut builder, frame(13, 0, 3), &mut out);
    assert_eq!(builder.gather().stats.refused.get(), 2);
    assert_eq!(builder.tally().balance().delivered, 4);
    // All of it is.
    feed(&mut builder, frame(9, 1, 3), &mut out);
    assert_eq!(builder.tally().balance().delivered, 4);
    assert_eq!(dropped(&builder, Cause::Late), 1);
    assert_eq!(builder.gather().stats.lost.get(), 1);
    // On trial, it is counted when the trial is over.
    feed(&mut builder, frame(1 << 40, 2, 4), &mut out);
    assert_eq!(builder.tally().balance().delivered, 4);
    feed(&mut builder, frame(15, 2, 5), &mut out);
    assert_eq!(builder.tally().balance().delivered, 5);
    assert_eq!(dropped(&builder, Cause::OutOfWindow), 1);
}
