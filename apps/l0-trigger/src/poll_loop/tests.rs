//! The loop: retries of the kernel, and nothing but work.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::cli::Cli;
use crate::outputs::Naming;
use crate::plan::Plan;
use crate::registries::Registries;
use crate::setup::Setup;
use clap::Parser;
use pollux_mempool::{BurstMut, PoolCache};
use pollux_pmd::driver::{Capabilities, Description, Driver, Queues, RxDriver, TxDriver};
use pollux_pmd::ledger::Sent;
use pollux_pmd::{Cause, PortConfig, PortError, Registry, TscClock};
use std::sync::atomic::{AtomicU64, Ordering};

/// A port on which no frame arrives, since its device loses one each time that it is asked. Counts
/// calls that send nothing.
#[derive(Clone, Default)]
struct Slow {
    kernel_backed: bool,
    tries: Arc<AtomicU64>,
}

impl Driver for Slow {
    fn capabilities(&self) -> Capabilities {
        let null = Registry::builtin().open("null").unwrap();
        Capabilities {
            kernel_backed: self.kernel_backed,
            ..null.capabilities()
        }
    }

    fn start(&mut self, _: &PortConfig, _: u16) -> Result<Queues, PortError> {
        Ok(Queues {
            rx: vec![Box::new(self.clone())],
            tx: vec![Box::new(self.clone())],
        })
    }
}

impl RxDriver for Slow {
    fn rx(
        &mut self,
        _: &mut PoolCache,
        _: &mut BurstMut<'_>,
        _: &mut pollux_pmd::driver::Origin,
        _: &mut pollux_pmd::Tally,
    ) -> usize {
        0
    }

    fn sync_counters(&mut self, tally: &mut pollux_pmd::Tally) {
        tally.count_from_wire(1, 0);
        tally.count_dropped(Cause::RingFull, 1);
    }
}

impl TxDriver for Slow {
    fn tx(&mut self, _: &mut PoolCache, burst: &mut BurstMut<'_>, _: &mut Sent) -> usize {
        assert!(burst.is_empty());
        self.tries.fetch_add(1, Ordering::Relaxed);
        0
    }
}

fn trigger_of(slow: &Slow) -> PollLoop {
    let (mut registry, driver) = (Registry::builtin(), slow.clone());
    registry.register(Description::new("slow", "nothing comes"), move |_| {
        Ok(Box::new(driver.clone()))
    });
    let cli = Cli::parse_from(["l0-trigger", "--port", "slow", "--port", "slow"]);
    let registries = Registries {
        ports: registry,
        ..Registries::default()
    };
    let plan = Plan::new(&cli, &registries).unwrap();
    let outputs = Naming::of(&cli).unwrap().name(None).unwrap();
    let clock = RunClock::Tsc(TscClock::get());
    let setup = Setup::new(&cli, &plan, &outputs, &registries, clock, &StopFlag::new());
    setup.unwrap().trigger
}

/// What the kernel had no room for at first goes out, though nothing else is sent.
#[test]
fn chores_try_again_to_send() {
    let slow = Slow {
        kernel_backed: true,
        ..Slow::default()
    };
    trigger_of(&slow).chores(Moment(0));
    assert_eq!(slow.tries.load(Ordering::Relaxed), 2, "each port once");
}

/// Of a device as of the kernel: boards are not to blame for them.
#[test]
fn chores_count_the_losses_of_each_port() {
    for kernel_backed in [false, true] {
        let slow = Slow {
            kernel_backed,
            ..Slow::default()
        };
        let mut trigger = trigger_of(&slow);
        let lost = |trigger: &mut PollLoop| -> u64 {
            let queues = trigger.inputs.iter_mut().filter_map(Input::queue);
            let lost = queues.map(|queue| queue.tally().balance().dropped_for(Cause::RingFull));
            lost.sum()
        };
        trigger.chores(Moment(0));
        assert_eq!(lost(&mut trigger), 2, "each port once");
        trigger.chores(Moment(0));
        assert_eq!(lost(&mut trigger), 4);
    }
}

/// The loop of the demonstration, from its first round to its last: it neither allocates, nor
/// frees, nor enters the kernel. Over ports with the kernel below, and in a replay, which waits
/// for its recorder, it does enter the kernel.
#[test]
fn the_loop_does_nothing_but_work() {
    assert_quiet("0");
}

/// Neither do the workers, which run until their stop flag is set.
#[test]
fn the_loop_does_nothing_but_work_with_a_worker() {
    assert_quiet("1");
}

/// Has the workers end, whatever comes before.
struct Ends(Vec<StopFlag>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.iter().for_each(StopFlag::stop);
    }
}

fn assert_quiet(workers: &str) {
    const EVENTS: u64 = 20_000;
    // Its port has no station that answers.
    const HUNG: &str = "ejfat:10.0.0.9:9,port=null";
    let directory = tempfile::tempdir().unwrap();
    let records = directory.path().join("records");
    let events = EVENTS.to_string();
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let there = format!("ejfat:{}", receiver.local_addr().unwrap());
    let arguments = [
        "l0-trigger",
        "--workers",
        workers,
        "--http",
        "127.0.0.1:0",
        // One that is there, one that refuses, and one that takes nothing, whose queue becomes full.
        "--output",
        &there,
        "--output",
        "ejfat:127.0.0.1:9,mtu=100",
        "--output",
        HUNG,
        "--events",
        &events,
        "--events-out",
    ];
    let arguments = arguments
        .iter()
        .map(AsRef::as_ref)
        .chain([records.as_os_str()]);
    let (cli, registries) = (Cli::parse_from(arguments), Registries::default());
    let mut plan = Plan::new(&cli, &registries).unwrap();
    let outputs = Naming::of(&cli).unwrap().name(None).unwrap();
    // As on CPUs of their own, however few there are: a loop that shares one gives way.
    plan.trigger_cpu = plan.trigger_cpu.or(Some(0));
    let stop = StopFlag::new();
    let clock = RunClock::Tsc(TscClock::get());
    let Setup {
        mut trigger,
        workers,
        boards,
        ports,
        collector,
        files,
        mut outputs,
        ..
    } = Setup::new(&cli, &plan, &outputs, &registries, clock, &stop).unwrap();
    let (mut boards, halt) = (boards.unwrap(), trigger.stop.clone());

    let (trigger, noise) = std::thread::scope(|scope| {
        // On a thread that is not observed: the work of the boards does not count.
        scope.spawn(move || {
            assert!(boards.run().complete);
            halt.stop();
        });
        let _ends = Ends(workers.iter().map(|worker| worker.stop.clone()).collect());
        for mut worker in workers {
            scope.spawn(move || worker.run());
        }
        pollux_pmd_testkit::guard::listen(move |ear| {
            let mut frames = Batch::with_capacity(MAX_BURST);
            let start = trigger.clock.now();
            let end = ear.during(|| {
                let end = trigger.work(start, &mut frames);
                trigger.pipeline.finish(&mut trigger.sink);
                end
            });
            assert_eq!(end, End::Stopped);
            trigger
        })
    });
    noise.assert_none();
    assert_eq!(trigger.sink.decisions, EVENTS);
    outputs.end();
    for report in outputs.finish() {
        assert!(report.balanced && report.handed > 0, "{report:?}");
        let is_full = report.lost.queue_full > 0 && report.delivered == 0;
        assert!(is_full || report.spec != HUNG, "{report:?}");
    }
    files.finish().1.unwrap();
    assert!(trigger.sink.taps.len() == 2 && !trigger.sink.answer.is_unresolved());
    assert!(collector.unwrap().collect(), "no event for the page");
    drop(ports);
}
