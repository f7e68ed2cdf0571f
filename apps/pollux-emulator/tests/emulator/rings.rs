//! The ring finder against the truth of seeded events: how many rings it finds, how many it
//! invents, and how long it takes.

use std::time::Instant;

use pollux_na62::physics::model::{EventModel, ModelConfig, Rings, TruthEvent};
use pollux_na62::physics::score::TruthScore;
use pollux_na62::rich::find::{FinderConfig, RingFinder};

const EVENTS: u64 = 20_000;

/// Efficiency and fake rate over the events of one model; prints both, and the time taken.
fn judge(name: &str, model: ModelConfig, finder: FinderConfig) -> (f64, f64) {
    let model = EventModel::new(model).unwrap();
    let mut finder = RingFinder::new(finder).unwrap();
    let mut event = TruthEvent::default();
    let mut score = TruthScore::default();
    let start = Instant::now();
    for n in 0..EVENTS {
        model.event(2024, n, &mut event);
    }
    let making = start.elapsed();
    for n in 0..EVENTS {
        model.event(2024, n, &mut event);
        score.add(&event.rings, finder.find(&event.hits));
    }
    let finding = start.elapsed().saturating_sub(making * 2);
    let (efficiency, fakes) = (score.efficiency().unwrap(), score.fake_rate().unwrap());
    println!(
        "{name}: efficiency {:.2} %, fakes {:.2} %, {} rings, {:.2} us to make an event, {:.2} us to find its rings",
        100.0 * efficiency,
        100.0 * fakes,
        score.findable,
        making.as_secs_f64() * 1e6 / EVENTS as f64,
        finding.as_secs_f64() * 1e6 / EVENTS as f64,
    );
    (efficiency, fakes)
}

fn rings(rings: Rings) -> ModelConfig {
    ModelConfig {
        rings,
        ..ModelConfig::default()
    }
}

/// The finder without the help of hit times.
fn timeless() -> FinderConfig {
    FinderConfig {
        time_window: 0,
        ..FinderConfig::default()
    }
}

#[test]
fn single_rings_are_found() {
    let model = rings(Rings::Fixed(1));
    for (name, finder) in [
        ("one ring", FinderConfig::default()),
        ("one ring, no times", timeless()),
    ] {
        let (efficiency, fakes) = judge(name, model, finder);
        assert!(efficiency >= 0.985 && fakes <= 0.005);
    }
}

#[test]
fn rings_of_a_mix_are_found() {
    let model = rings(Rings::Poisson(1.5));
    for (name, finder) in [
        ("mean 1.5", FinderConfig::default()),
        ("mean 1.5, no times", timeless()),
    ] {
        let (efficiency, fakes) = judge(name, model, finder);
        // A sixth of the rings has fewer than eight hits at the light of the real detector.
        assert!(efficiency >= 0.955 && fakes <= 0.0125);
    }
}

#[test]
fn crowded_events_are_survived() {
    let (efficiency, fakes) = judge(
        "four rings",
        rings(Rings::Fixed(4)),
        FinderConfig::default(),
    );
    assert!(efficiency >= 0.9 && fakes <= 0.06);
}
