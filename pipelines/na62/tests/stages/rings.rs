//! Sources with more hits than rings explain.

use crate::common::{Part, env, event, fragment, l0, stored};
use pollux_mempool::time::Tsc;
use pollux_na62::l0::{Event, Fragments, Reconstructed};
use pollux_na62::rich::Hit;
use pollux_na62::rich::find::FinderConfig;
use pollux_na62::rich::geometry::board_of;
use pollux_na62::stages::{Build, BuildOptions, FindRings, MergeHits, MergeHitsOptions};
use pollux_pipelines::{Batch, Moment, Stage, StageEnv};

const BOARDS: u8 = 4;
const EVENTS: u64 = 40;

/// The fragments of the boards for an event: its hits, and noise hits of one board.
fn parts(timestamp: u64, noise: Option<&(u16, Vec<Hit>)>) -> Vec<Part> {
    let hits = event(timestamp);
    let part = |source: u16| {
        let own = |hit: &&Hit| u16::from(board_of(hit.pm, BOARDS)) == source;
        let mut own: Vec<Hit> = hits.iter().filter(own).copied().collect();
        if let Some((_, noise)) = noise.filter(|(board, _)| *board == source) {
            own.clone_from(noise);
        }
        Part {
            at: Moment(timestamp * 25),
            arrival: Tsc(timestamp * 25),
            hits: own,
            ..fragment(source, timestamp, 0)
        }
    };
    (0..BOARDS.into()).map(part).collect()
}

/// The hits and the number of rings of each event, and how often each board was hot.
fn run<B>(
    make: fn(&mut StageEnv) -> B,
    noise: Option<&(u16, Vec<Hit>)>,
) -> (Vec<(Vec<Hit>, usize)>, Vec<u64>)
where
    B: Stage<In = Fragments, Out = Event>,
{
    let mut env = env(BOARDS.into());
    let mut builder = make(&mut env);
    let (mut batch, mut events) = (Batch::with_capacity(1), Vec::new());
    for n in 0..EVENTS {
        // Odd time stamps have their ring on disk 1, which boards 2 and 3 read out.
        for part in parts(2 * n + 1, noise) {
            batch.push(stored(&[part])).unwrap();
            builder.process(&mut batch, &mut events);
            batch.clear();
        }
    }
    builder.finish(&mut events);
    let mut finder =
        FindRings::with_stats(FinderConfig::default(), l0(&env).stats.clone()).unwrap();
    let mut found = Vec::<Reconstructed>::new();
    for event in events {
        let mut batch = Batch::with_capacity(1);
        batch.push(event).unwrap();
        finder.process(&mut batch, &mut found);
    }
    let found = found
        .iter()
        .map(|event| (event.hits().to_vec(), event.rings().len()));
    let counts = l0(&env).stats.sources.iter().enumerate();
    let hot = counts.map(|(source, counts)| {
        let named = l0(&env).stats.faults(source).contains(&"hot");
        assert_eq!(named, counts.hot.get() > 0);
        counts.hot.get()
    });
    (found.collect(), hot.collect())
}

fn build(env: &mut StageEnv) -> Build {
    Build::new(&BuildOptions::default(), env).unwrap()
}

fn merge(env: &mut StageEnv) -> MergeHits {
    MergeHits::new(&MergeHitsOptions::default(), env).unwrap()
}

/// The channels of the hits do not matter: the board that sends them is hot.
fn a_hot_board_is_masked_and_named<B>(make: fn(&mut StageEnv) -> B)
where
    B: Stage<In = Fragments, Out = Event>,
{
    let (clean, hot) = run(make, None);
    assert_eq!((clean.len(), hot), (EVENTS as usize, vec![0; 4]));
    assert!(clean.iter().map(|(_, rings)| rings).sum::<usize>() >= EVENTS as usize);
    for first in [0, 488, 1000, 1600] {
        let noise: Vec<_> = (first..first + 255)
            .map(|pm| Hit { pm, fine: 104 })
            .collect();
        let (noisy, hot) = run(make, Some(&(1, noise.clone())));
        assert_eq!(hot, [0, EVENTS, 0, 0], "{first}");
        for ((before, rings), (hits, found)) in clean.iter().zip(&noisy) {
            assert_eq!(found, rings, "{first}");
            // The event keeps its hits; masked ones come last.
            let others = before.iter().filter(|hit| board_of(hit.pm, BOARDS) != 1);
            let expected = others.chain(&noise).map(|hit| hit.pm);
            assert!(hits.iter().map(|hit| hit.pm).eq(expected), "{first}");
        }
    }
    let noise = (0..122).map(|pm| Hit { pm, fine: 104 }).collect();
    let (_, hot) = run(make, Some(&(3, noise)));
    assert_eq!(hot, [0; 4], "as many as rings may explain");
}

#[test]
fn a_hot_board_is_masked_and_named_by_build() {
    a_hot_board_is_masked_and_named(build);
}

#[test]
fn a_hot_board_is_masked_and_named_by_merge() {
    a_hot_board_is_masked_and_named(merge);
}

#[test]
fn all_hits_cannot_be_hot() {
    let none = BuildOptions {
        hot_hits: 0,
        ..BuildOptions::default()
    };
    let why = Build::new(&none, &mut env(4)).err().unwrap();
    assert!(why.starts_with("hot_hits = 0"), "{why}");
}
