//! A run: open, launch, keep house, stop in order, report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use pollux_emulator::link::PortLink;
use pollux_emulator::rings::RingCheck;
use pollux_emulator::run::EmulatorReport;
use pollux_pmd::lcore::{self, Lcore, StopFlag};
use pollux_pmd::{Port, PortError, Started};
use pollux_program::{Reload, Service, ports};

use crate::boards::BoardWatch;
use crate::cli::Cli;
use crate::counters::Counters;
use crate::crew::Crew;
use crate::display::Collector;
use crate::eyes::Eyes;
use crate::files;
use crate::hearing::Hearing;
use crate::plan::Plan;
use crate::reload::Rules;
use crate::report::{CoreReport, Report};
use crate::setup::{Queues, Setup, TAP_RECORDS};
use crate::summary;
use crate::trigger::{End, Finished};
use crate::worker;

/// How often housekeeping looks after its queues.
const ROUND: Duration = Duration::from_millis(20);

/// What is left of a run, for [`summary`].
pub struct Ended {
    /// The number of the run.
    pub run: Option<u32>,
    pub finished: Finished,
    /// The device of a port is gone.
    pub gone: bool,
    pub emulator: Option<EmulatorReport>,
    pub counters: Arc<Counters>,
    pub check: Option<RingCheck>,
    pub files: files::Reports,
    pub duration: Duration,
    pub cores: Vec<CoreReport>,
    /// Why no answer has reached anybody, where somebody was to be told.
    pub unheard: Option<String>,
}

type BoardsThread = Lcore<(EmulatorReport, PortLink)>;

/// What a run is part of.
pub struct Host<'a> {
    /// The number of the run.
    pub run: Option<u32>,
    /// Ends the run.
    pub stop: StopFlag,
    /// Ends the program, and the run with it.
    pub quit: StopFlag,
    /// Asks for other rules.
    pub reload: Reload,
    pub service: &'a mut Service,
    /// The program ends with this run.
    pub is_alone: bool,
}

impl Host<'_> {
    /// To be called now and then while the loops run.
    fn keep(&mut self, counters: &Counters) {
        if self.quit.is_set() {
            self.stop.stop();
        }
        self.service.ready();
        // Each look at the clock is one: a loop that stands still has none.
        self.service.alive(|| counters.gaps.percentiles().count);
    }

    /// What the service manager shows of the run.
    fn show(&mut self, built: u64, rate: f64) {
        let run = self.run.map_or_else(String::new, |run| format!(" {run}"));
        let status = format!("run{run}: {built} events, {rate:.0}/s");
        self.service.status(&status);
    }
}

/// Runs the plan until its end, or until its host ends it.
///
/// What goes wrong at the end (a file that could not be completed) comes beside the report.
pub fn run(
    cli: &Cli,
    plan: &Plan,
    setup: Setup,
    eyes: Eyes,
    mut host: Host<'_>,
) -> Result<(Report, Result<()>)> {
    let (stop, run) = (host.stop.clone(), host.run);
    let cores = cores(plan);
    let Setup {
        ports,
        trigger,
        workers,
        boards,
        check,
        counters,
        collector,
        rules,
        files,
    } = setup;
    let halt = trigger.stop.clone();
    let specs = plan.ports.iter().cloned();
    let hearing = Hearing::new(plan.config.answer.address(), specs, &trigger);

    let started = Instant::now();
    let mut crew = Crew::launch(workers, plan)?;
    let trigger = lcore::launch("trigger", plan.trigger_cpu, move || trigger.run())?;
    let boards: Option<BoardsThread> = match boards {
        Some(mut boards) => {
            let body = move || (boards.run(), boards.into_link());
            Some(lcore::launch("emulator", plan.emulator_cpu, body)?)
        }
        None => None,
    };
    // After the launches: a new thread inherits where its parent may run.
    let busy = plan.worker_cpus.iter().chain([&plan.trigger_cpu]);
    lcore::keep_off(&busy.flatten().copied().collect::<Vec<_>>());
    let mut house = House {
        check,
        collector,
        counters: Arc::clone(&counters),
        boards: BoardWatch::new(&plan.config),
        hearing,
        quiet: cli.quiet,
        eyes,
        rules: Rules {
            asked: host.reload.clone(),
            file: cli.config.clone(),
            started: plan.config.clone(),
            exchange: rules,
        },
    };
    house.keep(
        &ports,
        &trigger,
        boards.as_ref(),
        &mut crew,
        &mut host,
        &halt,
        cli.duration.duration,
    );
    if host.is_alone || host.quit.is_set() {
        host.service.stopping();
    }
    let finished = trigger.join();
    stop.stop();
    let boards = boards.map(Lcore::join).transpose();
    // Last: the trigger has had all that they were at.
    let crew = crew.join();
    let duration = started.elapsed();
    let (mut finished, boards) = (finished?, boards?);
    house.drain();
    house.boards.watch(&counters.stats);
    let mut queues = Queues::default();
    queues
        .rx
        .extend(finished.inputs.drain(..).map(|input| input.rx));
    let sides = finished.outlet.sides.drain(..);
    queues.tx.extend(sides.filter_map(|side| side.tx));
    let emulator = boards.map(|(report, link)| {
        let (tx, rx) = link.into_queues();
        queues.tx.push(tx);
        queues.rx.extend(rx);
        report
    });
    let stopped = ports::stop(ports, queues.rx, queues.tx);
    let gone = matches!(stopped, Err(PortError::Gone { .. }));
    let stopped = stopped.context("the run ended, but not cleanly");
    let (files, completed) = files.finish();
    let unheard = house.hearing.unheard();
    let heard = unheard.clone().map_or(Ok(()), |why| Err(anyhow!(why)));
    let ended = Ended {
        run,
        finished,
        gone,
        emulator,
        counters,
        check: house.check,
        files,
        duration,
        cores,
        unheard,
    };
    let end = crew.and(completed).and(stopped).and(heard);
    Ok((summary::report(plan, ended), end))
}

/// The loops, their CPUs, and whether those are isolated; logs the remedy where not.
fn cores(plan: &Plan) -> Vec<CoreReport> {
    let mut cores = vec![("trigger".to_owned(), plan.trigger_cpu)];
    if plan.emulator.is_some() {
        cores.push(("emulator".into(), plan.emulator_cpu));
    }
    let workers = plan.worker_cpus.iter().enumerate();
    cores.extend(workers.map(|(n, &cpu)| (worker::name(n), cpu)));
    let check = |(role, cpu): (String, Option<usize>)| CoreReport {
        isolated: cpu.is_some_and(|cpu| lcore::check_isolation(&role, cpu)),
        role,
        cpu,
    };
    cores.into_iter().map(check).collect()
}

/// What the main thread does while the loops run.
struct House {
    check: Option<RingCheck>,
    collector: Option<Collector>,
    counters: Arc<Counters>,
    boards: BoardWatch,
    hearing: Hearing,
    quiet: bool,
    eyes: Eyes,
    rules: Rules,
}

impl House {
    fn drain(&mut self) -> bool {
        let checked = self
            .check
            .as_mut()
            .is_some_and(|check| check.poll(TAP_RECORDS) > 0);
        let collected = self.collector.as_mut().is_some_and(Collector::collect);
        checked || collected
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "all that runs meanwhile, and all that ends it"
    )]
    fn keep(
        &mut self,
        ports: &[Port<Started>],
        trigger: &Lcore<Finished>,
        emulator: Option<&BoardsThread>,
        crew: &mut Crew,
        host: &mut Host<'_>,
        halt: &StopFlag,
        limit: Option<Duration>,
    ) {
        let start = Instant::now();
        let mut shown = (start, 0);
        while !trigger.is_finished() {
            let busy = self.drain();
            self.rules.keep();
            host.keep(&self.counters);
            crew.watch(&self.counters.workers);
            self.boards.watch(&self.counters.stats);
            self.hearing.watch(Instant::now());
            if !self.eyes.keep(ports) || limit.is_some_and(|limit| start.elapsed() >= limit) {
                host.stop.stop();
            }
            if emulator.is_some_and(Lcore::is_finished) {
                halt.stop();
            }
            if shown.0.elapsed() >= Duration::from_secs(1) {
                let built = self.counters.stats.events.built.get();
                let rate = (built - shown.1) as f64 / shown.0.elapsed().as_secs_f64();
                let seconds = start.elapsed().as_secs();
                if !self.quiet {
                    pollux_program::say(format_args!(
                        "{seconds:>5} s {built:>12} events {rate:>10.0}/s"
                    ));
                }
                host.show(built, rate);
                shown = (Instant::now(), built);
            }
            if !busy {
                let left = limit.map_or(ROUND, |limit| limit.saturating_sub(start.elapsed()));
                std::thread::sleep(ROUND.min(left));
            }
        }
    }
}

/// Why a run ended, for its report.
pub fn end(ended: &Ended) -> &'static str {
    let complete = || {
        ended
            .emulator
            .as_ref()
            .is_some_and(|boards| boards.complete)
    };
    match ended.finished.end {
        _ if ended.gone => "gone",
        End::Stopped if complete() => "complete",
        End::Stopped => "stopped",
        End::Exhausted => "exhausted",
        End::Enough => "enough",
    }
}
