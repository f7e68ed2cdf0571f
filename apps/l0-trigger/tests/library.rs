//! The trigger in another program: stages, drivers and handlers of its own, and what goes wrong with
//! them.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use l0_trigger::{Report, StopFlag, Trigger, TriggerBuilder};
use pollux_mempool::{BurstMut, PoolCache};
use pollux_na62::l0::{Decision, Event};
use pollux_na62::stage_registry;
use pollux_pipelines::{Batch, DynStage, Output, Stage, registry::StageRegistry};
use pollux_pmd::driver::{Capabilities, Description, Driver, Origin, Queues, RxDriver};
use pollux_pmd::{Clock as _, PortConfig, PortError, Registry, Tally, TscClock};
use serde::Deserialize;

/// Runs have loops that never sleep: one at a time, as machines have few CPUs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A demonstration without end.
fn endless() -> TriggerBuilder {
    Trigger::builder().events(1 << 36)
}

/// The stages of the built-in configuration, with one more behind `build`.
fn with_stage(table: &str) -> String {
    format!(
        "[[stage]]\nname = \"decompress\"\n[[stage]]\nname = \"build\"\n[[stage]]\n{table}\n\
         [[stage]]\nname = \"rings\"\n[[stage]]\nname = \"decide\"\n"
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchOptions {
    panic_at: Option<u64>,
}

/// Counts events, and panics at one of them if the configuration has it so.
struct Watch {
    panic_at: Option<u64>,
    seen: Arc<AtomicU64>,
}

impl Stage for Watch {
    type In = Event;
    type Out = Event;

    fn process(&mut self, batch: &mut Batch<Event>, out: &mut impl Output<Event>) {
        for event in batch.drain() {
            let seen = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
            assert!(self.panic_at != Some(seen), "as the test wants it");
            out.push(event);
        }
    }
}

/// The built-in stages and `watch`; how many events it has seen.
fn watched() -> (StageRegistry, Arc<AtomicU64>) {
    let seen = Arc::<AtomicU64>::default();
    let (mut stages, count) = (stage_registry(), Arc::clone(&seen));
    stages.register("watch", move |options: WatchOptions, _| {
        let WatchOptions { panic_at } = options;
        if panic_at == Some(0) {
            return Err("panic_at = 0: events are numbered from 1".into());
        }
        let seen = Arc::clone(&count);
        Ok(DynStage::new("watch", Watch { panic_at, seen }))
    });
    (stages, seen)
}

#[test]
fn a_stage_of_another_program_is_one_of_the_pipeline() {
    let _alone = alone();
    let (stages, seen) = watched();
    let trigger = Trigger::builder()
        .stage_registry(stages)
        .configuration(with_stage("name = \"watch\""))
        .events(2000);
    let report = trigger.build().unwrap().run().unwrap();
    assert_eq!(report.end(), "complete");
    assert_eq!(seen.load(Ordering::Relaxed), report.events());
    assert_eq!(report.accepted() + report.rejected(), report.events());
    assert!(report.is_balanced());
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert!(json["latency_ns"]["watch"]["count"].as_u64().unwrap() > 0);
    assert!(report.to_string().contains("\n  watch "), "{report}");
}

#[test]
fn a_configuration_that_is_wrong_is_refused_with_the_line_of_the_stage() {
    let error = |table: &str| {
        let trigger = Trigger::builder().stage_registry(watched().0);
        let built = trigger.configuration(with_stage(table)).build();
        format!("{:#}", built.err().unwrap())
    };
    let zero = error("name = \"watch\"\npanic_at = 0");
    assert!(
        zero.contains("line 5") && zero.contains("panic_at = 0"),
        "{zero}"
    );
    let typo = error("name = \"watch\"\npanic = 1");
    assert!(
        typo.contains("line 5") && typo.contains("`panic`"),
        "{typo}"
    );
    let unknown = error("name = \"look\"");
    assert!(unknown.contains("decide, watch"), "{unknown}");
    // It takes events: there are none in front of `build`.
    let place = "[[stage]]\nname = \"watch\"\n[[stage]]\nname = \"decide\"\n";
    let trigger = Trigger::builder().stage_registry(watched().0);
    let error = trigger.configuration(place).build().err().unwrap();
    assert!(format!("{error:#}").contains("`watch`"), "{error:#}");
    // Without the registry the stage is not known.
    let built = Trigger::builder().configuration(with_stage("name = \"watch\""));
    assert!(built.build().is_err());
}

#[test]
fn options_are_values_and_never_other_options() {
    for port in ["loopback --events 5", "--events=5", ""] {
        assert!(Trigger::builder().port(port).build().is_err(), "{port}");
    }
    let file = Trigger::builder().configuration_file("--check").build();
    assert!(format!("{:#}", file.err().unwrap()).contains("--config --check"));
    assert!(Trigger::builder().workers(65).build().is_err());
    assert!(Trigger::builder().rx_loops(17).build().is_err());
    assert!(Trigger::builder().events(0).build().is_err());
    assert!(
        Trigger::builder()
            .duration(Duration::ZERO)
            .events(1)
            .build()
            .is_err()
    );
    assert!(Trigger::builder().cores(&[99_999]).build().is_err());
}

#[test]
fn a_flag_ends_a_run_that_goes_on_and_one_that_has_not_begun() {
    let _alone = alone();
    let stop = StopFlag::new();
    stop.stop();
    let trigger = endless().stop_flag(stop).build().unwrap();
    let report = trigger.run().unwrap();
    assert_eq!((report.end(), report.is_balanced()), ("stopped", true));

    // The handler sets it: some events have been decided by then.
    let stop = StopFlag::new();
    let flag = stop.clone();
    let trigger = endless().stop_flag(stop).on_decision(move |_| flag.stop());
    let report = trigger.build().unwrap().run().unwrap();
    assert_eq!((report.end(), report.is_balanced()), ("stopped", true));
    assert!(report.events() > 0);
}

#[test]
fn handlers_get_every_decision_that_files_have() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (records, report) = (folder.path().join("events"), folder.path().join("report"));
    let decided = Arc::<Mutex<Vec<(u64, bool)>>>::default();
    let list = Arc::clone(&decided);
    let trigger = |records: &Path| {
        let list = Arc::clone(&list);
        Trigger::builder()
            .events(2000)
            .events_out(records)
            .report(&report)
            .on_decision(move |event| list.lock().unwrap().push((event.timestamp, event.accepted)))
    };
    let ended = trigger(&records).build().unwrap().run().unwrap();
    let decided = std::mem::take(&mut *decided.lock().unwrap());
    assert_eq!(
        decided.len() as u64 + ended.decisions_missed(),
        ended.events()
    );
    assert!(decided.is_sorted_by_key(|&(timestamp, _)| timestamp));
    let accepted = decided.iter().filter(|(_, accepted)| *accepted).count();
    if ended.decisions_missed() == 0 {
        assert_eq!(accepted as u64, ended.accepted());
    }
    let len = fs::metadata(&records).unwrap().len();
    assert_eq!(len, 64 * (1 + ended.events()));
    let written: serde_json::Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
    assert_eq!(written["events"]["built"], ended.events());

    // Files that are there are not overwritten unless the program says so.
    let error = trigger(&records).build().err().unwrap().to_string();
    assert!(error.contains("the file exists"), "{error}");
    trigger(&records)
        .overwrite()
        .build()
        .unwrap()
        .run()
        .unwrap();
    assert_eq!(list.lock().unwrap().len() as u64, 2000);
}

#[test]
fn a_handler_or_a_stage_that_panics_fails_its_run_and_no_other() {
    let _alone = alone();
    let trigger = endless().on_decision(|_| panic!("as the test wants it"));
    let error = trigger.build().unwrap().run().unwrap_err();
    assert!(error.to_string().contains("has panicked"), "{error}");
    assert!(error.report().is_none());

    let (stages, seen) = watched();
    let trigger = endless()
        .stage_registry(stages)
        .configuration(with_stage("name = \"watch\"\npanic_at = 100"));
    let error = trigger.build().unwrap().run().unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
    assert_eq!(seen.load(Ordering::Relaxed), 100);

    let report = Trigger::builder()
        .events(500)
        .build()
        .unwrap()
        .run()
        .unwrap();
    assert_eq!((report.events(), report.is_balanced()), (500, true));
}

#[test]
fn two_triggers_run_beside_each_other() {
    let _alone = alone();
    let threads = [1000, 1500].map(|events| {
        let trigger = Trigger::builder().events(events).build().unwrap();
        std::thread::spawn(move || (events, trigger.run().unwrap()))
    });
    for thread in threads {
        let (events, report) = thread.join().unwrap();
        assert_eq!((report.events(), report.is_balanced()), (events, true));
    }
}

/// A port whose frames are noise of any length; it may refuse to start.
#[derive(Clone)]
struct Noise {
    starts: bool,
    sent: Arc<AtomicU64>,
}

impl Driver for Noise {
    fn capabilities(&self) -> Capabilities {
        let null = Registry::builtin().open("null").unwrap();
        Capabilities {
            max_tx_queues: 0,
            ..null.capabilities()
        }
    }

    fn start(&mut self, _: &PortConfig, _: u16) -> Result<Queues, PortError> {
        if !self.starts {
            // Any error of a driver: that of a device which is not there.
            let missing = Registry::builtin().open("pcap:rx=/nowhere/at/all");
            return Err(missing.map(drop).unwrap_err());
        }
        Ok(Queues {
            rx: vec![Box::new(self.clone())],
            tx: Vec::new(),
        })
    }
}

impl RxDriver for Noise {
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let mut received = 0;
        while out.free() > 0 {
            let n = self.sent.fetch_add(1, Ordering::Relaxed);
            let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let len = (random >> 53) as usize % 1500;
            let frame: Vec<u8> = (0..len).map(|i| (random >> (i % 57)) as u8).collect();
            let Some(mut mbuf) = cache.alloc_from(&frame) else {
                break;
            };
            tally.count_from_wire(1, len as u64);
            origin.stamp(&mut mbuf, TscClock::get().now());
            assert!(out.push(mbuf).is_ok());
            received += 1;
        }
        received
    }
}

fn noise(starts: bool) -> (TriggerBuilder, Arc<AtomicU64>) {
    let (mut ports, sent) = (Registry::builtin(), Arc::<AtomicU64>::default());
    let port = Noise {
        starts,
        sent: Arc::clone(&sent),
    };
    let about = Description::new("noise", "frames of random bytes");
    ports.register(about, move |_| Ok(Box::new(port.clone())));
    let trigger = Trigger::builder().port_registry(ports).port("noise");
    (trigger, sent)
}

#[test]
fn every_frame_of_a_driver_of_another_program_is_accounted_for() {
    let _alone = alone();
    assert_noise_is_counted(noise(true));
}

/// The same with two loops that receive, each on a port of its own.
#[test]
fn every_frame_of_several_receive_loops_is_accounted_for() {
    let _alone = alone();
    let (trigger, sent) = noise(true);
    let report = assert_noise_is_counted((trigger.port("noise").rx_loops(2), sent));
    assert!(report.to_json().contains(r#""core":"receiver 1""#));
}

fn assert_noise_is_counted((trigger, sent): (TriggerBuilder, Arc<AtomicU64>)) -> Report {
    let stop = StopFlag::new();
    let trigger = trigger.stop_flag(stop.clone()).build().unwrap();
    let watched = Arc::clone(&sent);
    let ender = std::thread::spawn(move || {
        while watched.load(Ordering::Relaxed) < 10_000 {
            std::thread::yield_now();
        }
        stop.stop();
    });
    let report = trigger.run().unwrap();
    ender.join().unwrap();
    assert_eq!((report.end(), report.is_balanced()), ("stopped", true));
    assert!(
        report.frames() >= 10_000 && report.events() == 0,
        "{report}"
    );
    assert_eq!(
        report.dropped("not-for-us") + report.dropped("malformed"),
        report.frames()
    );
    assert_eq!(report.dropped("no such cause"), 0);
    report
}

#[test]
fn a_port_that_does_not_start_is_an_error_and_leaves_nothing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let (trigger, _) = noise(false);
    let error = trigger.report(&file).build().unwrap().run().unwrap_err();
    assert!(error.report().is_none() && !file.exists(), "{error}");
    assert!(error.to_string().contains("/nowhere"), "{error}");
    // In another registry the driver is not known.
    assert!(Trigger::builder().port("noise").build().is_err());
}

/// The types of the API can go to other threads.
#[test]
fn a_trigger_can_be_sent_to_another_thread() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&Trigger::builder());
    is_send(&Trigger::builder().build().unwrap());
    let _: fn(&Decision) -> bool = |decision| decision.verdict().accepted();
}
