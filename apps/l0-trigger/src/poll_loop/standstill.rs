//! A loop that stands still while frames wait in a queue.

#![allow(clippy::unwrap_used)]
use std::sync::Mutex;
use std::time::Duration;

use clap::Parser;
use pollux_mempool::{BurstMut, PoolCache};
use pollux_na62::formats::hits::HitsWriter;
use pollux_na62::rich::Hit;
use pollux_na62::stage_registry;
use pollux_pipelines::registry::StageRegistry;
use pollux_pmd::driver::{Capabilities, Description, Driver, Origin, Queues, RxDriver};
use pollux_pmd::net::{MacAddr, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd::{ArrivalTime, PortConfig, PortError, Registry, Tally, TscClock};

use super::*;
use crate::cli::Cli;
use crate::outputs::Naming;
use crate::plan::Plan;
use crate::registries::Registries;
use crate::setup::Setup;

const STANDSTILL: Duration = Duration::from_millis(5);

/// More than a burst: all of them wait.
pub(super) const EVENTS: u64 = 25;

/// A port without stamps; its frames are those in the list.
#[derive(Clone)]
pub(super) struct Plain(pub(super) Arc<Mutex<Vec<Vec<u8>>>>);

impl Driver for Plain {
    fn capabilities(&self) -> Capabilities {
        let null = Registry::builtin().open("null").unwrap();
        Capabilities {
            max_tx_queues: 0,
            ..null.capabilities()
        }
    }

    fn start(&mut self, _: &PortConfig, _: u16) -> Result<Queues, PortError> {
        Ok(Queues {
            rx: vec![Box::new(self.clone())],
            tx: vec![],
        })
    }
}

impl RxDriver for Plain {
    fn rx(
        &mut self,
        cache: &mut PoolCache,
        out: &mut BurstMut<'_>,
        origin: &mut Origin,
        tally: &mut Tally,
    ) -> usize {
        let mut frames = self.0.lock().unwrap();
        let n = out.free().min(frames.len());
        for frame in frames.drain(..n) {
            let mut mbuf = cache.alloc_from(&frame).unwrap();
            origin.stamp(&mut mbuf, TscClock::get().now());
            out.push(mbuf).unwrap();
            tally.count_from_wire(1, frame.len() as u64);
        }
        n
    }
}

/// A frame of each board for each event.
pub(super) fn frames(boards: u8) -> Vec<Vec<u8>> {
    let of = |event: u64, board: u8| {
        let mut writer = HitsWriter::new(vec![0; 1472], 0x1c, board, event as u32).unwrap();
        let hits = [Hit { pm: 7, fine: 9 }];
        writer.push(1000 + 400 * event, &hits).unwrap();
        let (payload, len) = writer.finish();
        let end = |last: u8, port: u16| UdpEndpoint {
            mac: MacAddr([2, 0, 0, 0, 0, last]),
            socket: std::net::SocketAddrV4::new([10, 0, 0, last].into(), port),
        };
        let template = UdpTemplate::new(end(2, 5000), end(1, 58_913 + u16::from(board)));
        let mut frame = vec![0; UDP_HEADERS + len];
        frame[UDP_HEADERS..].copy_from_slice(&payload[..len]);
        template.write(&mut frame, len).unwrap();
        frame
    };
    let events = (0..EVENTS).flat_map(|event| (0..boards).map(move |board| of(event, board)));
    events.collect()
}

/// The trigger on such a port, and what its frames are.
fn trigger() -> (PollLoop, Plain, Arc<crate::counters::Counters>) {
    trigger_of(stage_registry(), None)
}

/// The same with these stages, and a configuration that names them.
pub(super) fn trigger_of(
    stages: StageRegistry,
    configuration: Option<&str>,
) -> (PollLoop, Plain, Arc<crate::counters::Counters>) {
    let arguments = ["l0-trigger", "--port", "plain"];
    let (setup, plain) = setup_of(&arguments, stages, configuration, &StopFlag::new());
    (setup.trigger, plain, setup.counters)
}

/// The whole of it, with these arguments.
pub(super) fn setup_of(
    arguments: &[&str],
    stages: StageRegistry,
    configuration: Option<&str>,
    stop: &StopFlag,
) -> (Setup, Plain) {
    let (mut registry, plain) = (Registry::builtin(), Plain(Arc::default()));
    let port = plain.clone();
    registry.register(Description::new("plain", "without stamps"), move |_| {
        Ok(Box::new(port.clone()))
    });
    let mut cli = Cli::parse_from(arguments);
    cli.configuration = configuration.map(Into::into);
    let registries = Registries {
        ports: registry,
        stages,
        ..Registries::default()
    };
    let plan = Plan::new(&cli, &registries).unwrap();
    let outputs = Naming::of(&cli).unwrap().name(None).unwrap();
    assert_eq!(plan.config.budget(), Ns(1_000_000));
    let clock = RunClock::Tsc(TscClock::get());
    let setup = Setup::new(&cli, &plan, &outputs, &registries, clock, stop).unwrap();
    (setup, plain)
}

/// So many rounds of the loop.
pub(super) fn rounds(trigger: &mut PollLoop, n: usize) {
    let mut frames = Batch::with_capacity(MAX_BURST);
    for _ in 0..n {
        let now = trigger.clock.now();
        trigger.round(Tsc(0), now, &mut frames);
    }
}

#[test]
fn decisions_of_frames_that_waited_through_a_standstill_are_late() {
    let (mut trigger, plain, counters) = trigger();
    let arrival = counters.ledgers.ports[0].arrival_time();
    assert_eq!(arrival, Some(ArrivalTime::Poll));
    rounds(&mut trigger, 1);
    *plain.0.lock().unwrap() = frames(counters.stats.sources.len() as u8);
    std::thread::sleep(STANDSTILL);
    rounds(&mut trigger, 10);
    trigger.pipeline.finish(&mut trigger.sink);
    trigger.sink.flush();
    assert_eq!(counters.stats.events.complete.get(), EVENTS);
    let answers = &counters.answers;
    assert_eq!(answers.no_destination.get(), EVENTS);
    assert_eq!(answers.late.get(), EVENTS);
    assert_eq!(answers.unmarked.get(), 0, "they say that they are late");
    let total = trigger.sink.answer.total().percentiles();
    assert_eq!(total.count, EVENTS);
    let least = trigger.sink.answer.total().count_above(4_900_000);
    assert_eq!(least, EVENTS, "{total:?}");
}
