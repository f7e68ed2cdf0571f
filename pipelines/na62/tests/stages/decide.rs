//! Rules, and the events that they accept.

use std::cell::RefCell;

use crate::common::{env, hit, l0};
use pollux_mempool::{PoolCache, PoolConfig};
use pollux_na62::l0::{Decision, Draft, EventHead, Reconstructed, Verdict, event_pool};
use pollux_na62::merge::Span;
use pollux_na62::rich::find::{FinderConfig, Ring};
use pollux_na62::stages::{Decide, DecideOptions, MAX_RULES, RuleError, RuleExchange, RuleOptions};
use pollux_pipelines::{Batch, Moment, Stage};

thread_local! {
    /// One pool for all events of a test.
    static EVENTS: RefCell<PoolCache> = {
        let pool = event_pool(128, PoolConfig::default()).unwrap();
        RefCell::new(pool.cache(2).unwrap())
    };
}

fn event(timestamp: u64, hits: u16, rings: &[Ring]) -> Reconstructed {
    let head = EventHead {
        timestamp,
        ..EventHead::default()
    };
    let mut draft = EVENTS.with_borrow_mut(Draft::new).unwrap();
    assert!(draft.insert(0, &(0..hits).map(hit).collect::<Vec<_>>()));
    draft.finish(&head, Span::default()).reconstructed(rings)
}

fn radii(radii: &[f32]) -> Vec<Ring> {
    let ring = |&r: &f32| Ring {
        r,
        ..Ring::default()
    };
    radii.iter().map(ring).collect()
}

/// The rules of a stage's table.
fn options(toml: &str) -> DecideOptions {
    toml::from_str(toml).unwrap()
}

fn decide(stage: &mut Decide, events: impl IntoIterator<Item = Reconstructed>) -> Vec<Verdict> {
    let mut out = Vec::<Decision>::new();
    for event in events {
        let mut batch = Batch::default();
        batch.push(event).unwrap();
        stage.process(&mut batch, &mut out);
    }
    out.iter().map(Decision::verdict).collect()
}

/// Whether the single rule accepts an event with so many hits and these rings.
fn accepts(rule: &RuleOptions, hits: u16, rings: &[Ring]) -> bool {
    let rules = DecideOptions {
        rules: vec![RuleOptions {
            name: "it".into(),
            ..rule.clone()
        }],
        downscale: 0,
    };
    let mut env = env(1);
    let mut stage = Decide::new(&rules, &mut env).unwrap();
    let verdict = decide(&mut stage, [event(5, hits, rings)])[0];
    let counts = &l0(&env).stats.events;
    assert_eq!(
        (counts.accepted.get(), counts.rejected.get()),
        (verdict.accepted().into(), (!verdict.accepted()).into())
    );
    verdict.accepted()
}

#[test]
fn bounds_belong_to_what_is_accepted() {
    let any = RuleOptions {
        min_rings: 0,
        ..RuleOptions::default()
    };
    let rule = |change: &dyn Fn(&mut RuleOptions)| {
        let mut rule = any.clone();
        change(&mut rule);
        rule
    };
    assert!(accepts(&any, 0, &[]));
    let one_or_two = rule(&|rule| (rule.min_rings, rule.max_rings) = (1, 2));
    let all = radii(&[100.0, 150.0, 180.0]);
    assert_eq!(
        [0, 1, 2, 3].map(|n| accepts(&one_or_two, 0, &all[..n])),
        [false, true, true, false]
    );
    let hits = rule(&|rule| (rule.min_hits, rule.max_hits) = (7, 9));
    assert_eq!(
        [6, 7, 9, 10].map(|n| accepts(&hits, n, &[])),
        [false, true, true, false]
    );
    let window = rule(&|rule| (rule.radius_mm, rule.min_rings) = ([100.0, 150.0], 1));
    let one = [99.9, 100.0, 150.0, 150.1, f32::NAN, f32::INFINITY];
    assert_eq!(
        one.map(|r| accepts(&window, 0, &radii(&[r]))),
        [false, true, true, false, false, false]
    );
    let alone = RuleOptions {
        max_rings: 1,
        ..window.clone()
    };
    assert!(
        accepts(&alone, 0, &radii(&[90.0, 120.0, 190.0])),
        "one counts"
    );
    let round = rule(&|rule| (rule.max_chi2_mm2, rule.min_rings) = (25.0, 1));
    let with_chi2 = |chi2| Ring {
        chi2,
        ..Ring::default()
    };
    assert_eq!(
        [0.0, 25.0, 25.1, f32::NAN].map(|chi2| accepts(&round, 0, &[with_chi2(chi2)])),
        [true, true, false, false]
    );
    let second = rule(&|rule| (rule.disk, rule.min_rings) = (Some(1), 1));
    let on_disk = |disk| Ring {
        disk,
        ..Ring::default()
    };
    assert!(!accepts(&second, 0, &[on_disk(0)]));
    assert!(accepts(&second, 0, &[on_disk(0), on_disk(1)]));
}

#[test]
fn a_decision_says_which_rules_accepted_and_each_is_counted() {
    let rules = options(
        r#"
        downscale = 3
        [[rule]]
        name = "two"
        min_rings = 2
        [[rule]]
        name = "wide"
        radius_mm = [170, 200]
        prescale = 2
    "#,
    );
    let mut env = env(1);
    let mut stage = Decide::new(&rules, &mut env).unwrap();
    let shots: [&[f32]; 9] = [
        &[100.0],
        &[180.0],
        &[100.0, 180.0],
        &[],
        &[180.0, 180.0],
        &[],
        &[180.0],
        &[120.0],
        &[180.0],
    ];
    let events = (0..).zip(shots).map(|(n, shot)| event(n, 0, &radii(shot)));
    let verdicts = decide(&mut stage, events);
    // Of the five with a wide ring, the first, the third and the fifth.
    let accepted: Vec<_> = verdicts.iter().map(|verdict| verdict.rules).collect();
    assert_eq!(accepted, [0, 2, 1, 0, 3, 0, 0, 0, 2]);
    // Of the five that are rejected, the first and the fourth.
    let kept = (0..9).filter(|&n| verdicts[n].monitored);
    assert!(kept.eq([0, 6]), "{verdicts:?}");
    assert!(verdicts.iter().all(|verdict| verdict.rule_set == 0));
    let sets = env.get::<RuleExchange>().unwrap().book().sets();
    let [set] = &sets[..] else { panic!("{sets:?}") };
    assert_eq!((set.events.get(), set.accepted.get()), (9, 4));
    assert_eq!(set.monitored.get(), 2);
    let rules = set.rules.iter().map(|rule| {
        let counts = (rule.held.get(), rule.accepted.get());
        (rule.rule.name.as_str(), rule.rule.prescale, counts)
    });
    assert!(rules.eq([("two", 1, (2, 2)), ("wide", 2, (5, 3))]));
}

#[test]
fn rules_say_what_they_ask_for() {
    for (rule, asks) in [
        ("", "rings: 1 or more"),
        (
            "min_rings = 0\nmin_hits = 20\nprescale = 5",
            "rings: any number, hits: 20 or more, one in 5 of them",
        ),
        (
            "min_rings = 2\nmax_rings = 2\ndisk = 1",
            "rings: 2, on disk 1",
        ),
        (
            "max_rings = 3\nradius_mm = [100.5, 180]\nmax_chi2_mm2 = 40\nmax_hits = 60",
            "rings: 1 to 3, radius 100.5 to 180 mm, chi2 up to 40 mm2, hits: 0 to 60",
        ),
    ] {
        let rule: RuleOptions = toml::from_str(rule).unwrap();
        assert_eq!(rule.to_string(), asks);
    }
}

#[test]
fn prescales_go_by_the_order_of_the_events_alone() {
    let rules = options("rule = [{ name = \"one-in-seven\", prescale = 7 }]\ndownscale = 5");
    let events = || (0..100).map(|n| event(n, 0, &radii(&[150.0][..(n % 3 != 0).into()])));
    let expected = decide(&mut Decide::new(&rules, &mut env(1)).unwrap(), events());
    for size in [2, 3, 64] {
        let mut stage = Decide::new(&rules, &mut env(1)).unwrap();
        let (mut batch, mut out) = (Batch::with_capacity(size), Vec::<Decision>::new());
        for event in events() {
            if batch.is_full() {
                stage.process(&mut batch, &mut out);
            }
            batch.push(event).unwrap();
        }
        stage.process(&mut batch, &mut out);
        assert!(
            out.iter()
                .map(Decision::verdict)
                .eq(expected.iter().copied())
        );
    }
}

#[test]
fn rules_change_between_two_batches_and_each_event_is_decided_by_one_set() {
    let mut env = env(1);
    let first = options("rule = [{ name = \"large\", radius_mm = [150, 200] }]");
    let second = options("rule = [{ name = \"small\", radius_mm = [80, 150] }]");
    let mut stage = Decide::new(&first, &mut env).unwrap();
    let mut exchange = env.take::<RuleExchange>().unwrap();
    assert_eq!(exchange.options(), &first);
    let mut one = |r| decide(&mut stage, [event(0, 0, &radii(&[r]))])[0];
    let set = |rule_set, rules| Verdict {
        rules,
        rule_set,
        monitored: false,
    };
    assert_eq!(one(180.0), set(0, 1));
    assert_eq!(exchange.offer(&second), Ok(1));
    assert_eq!(exchange.options(), &second);
    assert_eq!((one(100.0), one(180.0)), (set(1, 1), set(1, 0)));
    // Invalid rules leave the previous ones active.
    let wrong = DecideOptions {
        rules: vec![],
        downscale: 0,
    };
    assert_eq!(exchange.offer(&wrong), Err(RuleError::Number(0)));
    assert_eq!(exchange.options(), &second);
    assert_eq!(one(100.0), set(1, 1));
    // Of sets that arrive faster than batches the last one is activated, up to a limit.
    let waiting: Vec<_> = (0..9).map_while(|_| exchange.offer(&first).ok()).collect();
    assert_eq!(waiting, [2, 3, 4, 5]);
    assert_eq!(exchange.offer(&first), Err(RuleError::Busy));
    assert_eq!((one(180.0), one(180.0)), (set(5, 1), set(5, 1)));
    assert_eq!(exchange.offer(&second), Ok(6));
    assert_eq!(one(180.0), set(6, 0));
    // While no event comes, ticks make room for others.
    for number in 7..30 {
        let options = if number % 2 == 0 { &second } else { &first };
        assert_eq!(exchange.offer(options), Ok(number));
        stage.tick(Moment(0), &mut Vec::new());
    }
    assert_eq!(
        decide(&mut stage, [event(0, 0, &radii(&[180.0]))])[0],
        set(29, 1)
    );
    exchange.reclaim();
    let sets = exchange.book().sets();
    let events = sets.iter().map(|set| (set.number, set.events.get()));
    let events: Vec<_> = events.filter(|&(_, events)| events > 0).collect();
    assert_eq!(events, [(0, 1), (1, 3), (5, 2), (6, 1), (29, 1)]);
    assert_eq!((sets.len(), l0(&env).stats.events.accepted.get()), (30, 6));
}

#[test]
fn wrong_rules_are_refused_with_what_is_wrong() {
    let refused = |toml: &str| Decide::new(&options(toml), &mut env(1)).err().unwrap();
    for (bound, message) in [
        (
            "min_rings = 3\nmax_rings = 2",
            "min_rings = 3 is above max_rings = 2",
        ),
        (
            "min_hits = 3\nmax_hits = 2",
            "min_hits = 3 is above max_hits = 2",
        ),
        (
            "radius_mm = [2, 1]",
            "radius_mm = [2, 1]: smallest first, both in mm",
        ),
        (
            "radius_mm = [-1, 5]",
            "radius_mm = [-1, 5]: smallest first, both in mm",
        ),
        (
            "radius_mm = [0, inf]",
            "radius_mm = [0, inf]: smallest first, both in mm",
        ),
        (
            "radius_mm = [nan, 1]",
            "radius_mm = [NaN, 1]: smallest first, both in mm",
        ),
        (
            "max_chi2_mm2 = -1",
            "max_chi2_mm2 = -1: it must not be negative",
        ),
        (
            "max_chi2_mm2 = nan",
            "max_chi2_mm2 = NaN: it must not be negative",
        ),
        ("disk = 2", "disk = 2: it must be 0 or 1"),
        (
            "prescale = 0",
            "prescale = 0: it must be at least 1, which accepts all",
        ),
    ] {
        let rule = format!("[[rule]]\nname = \"good\"\n[[rule]]\nname = \"bad\"\n{bound}");
        assert_eq!(refused(&rule), format!("rule `bad`: {message}"));
    }
    assert_eq!(refused("rule = []"), "0 rules: there must be 1 to 8");
    let names = |names: &[&str]| {
        let rules = names
            .iter()
            .map(|name| format!("[[rule]]\nname = \"{name}\"\n"));
        rules.collect::<String>()
    };
    let nine = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    assert_eq!(nine.len(), MAX_RULES + 1);
    assert_eq!(refused(&names(&nine)), "9 rules: there must be 1 to 8");
    assert!(Decide::new(&options(&names(&nine[1..])), &mut env(1)).is_ok());
    assert_eq!(
        refused(&names(&["a", "b", "a"])),
        "rule `a`: there are two of that name"
    );
    assert_eq!(
        refused(&names(&["a", ""])),
        "[[stage.rule]] number 2 has no `name`"
    );
}

/// The warnings about one rule, with the default ring finder.
fn doubts(rule: &str) -> Vec<String> {
    let mut env = env(1);
    env.insert(FinderConfig::default());
    let rules = format!("[[rule]]\nname = \"it\"\n{rule}");
    Decide::new(&options(&rules), &mut env).unwrap();
    env.warnings
}

#[test]
fn a_rule_that_can_never_accept_is_warned_of() {
    for (rule, why) in [
        (
            "min_rings = 9\nmax_rings = 9",
            "min_rings = 9, and an event has 8 at most",
        ),
        ("min_hits = 60000", "min_hits = 60000, and an event has"),
        ("max_hits = 4", "max_hits = 4, and a ring has 5 at least"),
        (
            "radius_mm = [10, 79]",
            "rings are looked for from 80 to 200 mm",
        ),
        (
            "radius_mm = [201, 300]",
            "rings are looked for from 80 to 200 mm",
        ),
        (
            "min_sources = 2",
            "min_sources = 2, and the number of sources is 1",
        ),
        ("sources = [0, 1]", "sources has 1, and the last one is 0"),
    ] {
        let doubts = doubts(rule);
        assert_eq!(doubts.len(), 1, "{rule}");
        assert!(
            doubts[0].starts_with("rule `it` can never accept: "),
            "{doubts:?}"
        );
        assert!(doubts[0].contains(why), "{doubts:?}");
    }
    for rule in [
        "max_hits = 5",
        "radius_mm = [10, 80]",
        "radius_mm = [200, 300]",
        "min_rings = 8",
        "min_sources = 1\nsources = [0]",
    ] {
        assert_eq!(doubts(rule), [""; 0], "{rule}");
    }
}

#[test]
fn a_rule_that_must_always_accept_is_warned_of() {
    let said = ["rule `it` accepts every event: none of its criteria excludes one"];
    for rule in [
        "min_rings = 0",
        "min_rings = 0\nradius_mm = [10, 20]\nmax_rings = 1",
    ] {
        assert_eq!(doubts(rule), said, "{rule}");
    }
    for rule in [
        "min_rings = 0\nprescale = 2",
        "min_rings = 0\nmax_rings = 7",
        "min_rings = 0\nmin_hits = 1",
        "min_rings = 0\nmax_hits = 100",
        "min_rings = 1",
    ] {
        assert_eq!(doubts(rule), [""; 0], "{rule}");
    }
    assert_eq!(
        DecideOptions::default().doubts(Some(&FinderConfig::default())),
        [""; 0]
    );
}
