//! A run: open, launch, supervise, stop in order, report.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use pollux_app::ports;
use pollux_pipelines::registry::StageRegistry;
use pollux_pmd::endpoint::PortEndpoint;
use pollux_pmd::lcore::{self, Lcore};
use pollux_pmd::ledger::SentView;
use pollux_pmd::port::{Port, Started};
use pollux_pmd::{PortError, RxQueue};

use crate::answer_watch::AnswerWatch;
use crate::boards::BoardWatch;
use crate::cli::Cli;
use crate::decision_output::DecisionOutput;
use crate::input::Input;
use crate::monitoring::Monitoring;
use crate::plan::Plan;
use crate::poll_loop::Finished;
use crate::receive_loop::{self, ReceivePool};
use crate::reload::Rules;
use crate::report::{CoreReport, Report};
use crate::setup::{Queues, Setup};
use crate::summary::{self, Ended};
use crate::supervisor::{BoardsLoop, Host, Supervisor};
use crate::worker;
use crate::worker_pool::WorkerPool;

/// Runs the plan until its end, or until the embedding program ends it.
///
/// A failure at the end (a file that could not be completed) is returned in addition to the report.
pub fn run(
    cli: &Cli,
    plan: &Plan,
    stages: &StageRegistry,
    setup: Setup,
    (monitoring, decisions): (Monitoring, Option<DecisionOutput>),
    mut host: Host<'_>,
) -> Result<(Report, Result<()>)> {
    let (stop, run) = (host.stop.clone(), host.run);
    let cores = cores(plan);
    let Setup {
        ports,
        trigger,
        workers,
        receivers,
        boards,
        check,
        counters,
        collector,
        rules,
        files,
        mut outputs,
    } = setup;
    let (halt, recorded) = (trigger.stop.clone(), trigger.recorded);
    let specs = plan.ports.iter().cloned();
    let answers = AnswerWatch::new(plan.config.answer.address(), specs, &trigger);

    let started = Instant::now();
    let mut worker_pool = WorkerPool::launch(workers, plan)?;
    let receive_pool = ReceivePool::launch(receivers, plan)?;
    let trigger = lcore::launch("trigger", plan.trigger_cpu, move || trigger.run())?;
    let boards: Option<BoardsLoop> = match boards {
        Some(mut boards) => {
            let body = move || (boards.run(), boards.into_link());
            Some(lcore::launch("emulator", plan.emulator_cpu, body)?)
        }
        None => None,
    };
    // After the launches: a new thread inherits the CPU affinity of its parent.
    keep_off_loops(plan);
    let mut supervisor = Supervisor {
        check,
        collector,
        counters: Arc::clone(&counters),
        boards: BoardWatch::new(&plan.config, recorded, Instant::now()),
        answers,
        quiet: cli.quiet,
        monitoring,
        decisions,
        rules: Rules {
            asked: host.reload.clone(),
            source: cli.source(),
            stages,
            started: plan.config.clone(),
            exchange: rules,
        },
    };
    supervisor.supervise(
        &ports,
        &trigger,
        boards.as_ref(),
        &mut worker_pool,
        &receive_pool,
        &mut host,
        &halt,
        cli.duration.duration,
    );
    if host.is_alone || host.quit.is_set() {
        host.service.stopping();
    }
    let finished = trigger.join();
    outputs.end();
    stop.stop();
    let boards = boards.map(Lcore::join).transpose();
    let (received, receive_pool) = receive_pool.join();
    // Last: the trigger has received all that they were working on.
    let worker_pool = worker_pool.join();
    let duration = started.elapsed();
    let (mut finished, boards) = (finished?, boards?);
    supervisor.drain();
    supervisor.watch_boards();
    let (mut queues, answered) = queues(&mut finished, received);
    let emulator = boards.map(|(report, link)| {
        let (tx, rx) = link.into_queues();
        queues.tx.push(tx);
        queues.rx.extend(rx);
        report
    });
    let stopped = stop_ports(ports, queues, answered, &mut finished);
    let gone = matches!(stopped, Err(PortError::Gone { .. }));
    let (files, completed) = files.finish();
    let wrong = summary::unbuilt(&counters, recorded).or_else(|| supervisor.answers.unheard());
    let ended = Ended {
        run,
        finished,
        gone,
        emulator,
        counters,
        check: supervisor.check,
        files,
        outputs: outputs.finish(),
        duration,
        cores,
        wrong: wrong.clone(),
    };
    let end = worker_pool
        .and(receive_pool)
        .and(completed)
        .and(stopped.context("the run ended, but not cleanly"))
        .and(wrong.map_or(Ok(()), |why| Err(anyhow!(why))));
    Ok((summary::report(plan, ended), end))
}

/// Keeps this thread off the CPUs of the loops.
fn keep_off_loops(plan: &Plan) {
    let others = plan.worker_cpus.iter().chain(&plan.receive_cpus);
    let busy = others.chain([&plan.trigger_cpu]);
    lcore::keep_off(&busy.flatten().copied().collect::<Vec<_>>());
}

/// Stops the ports; what their answers have come to is known then.
fn stop_ports(
    ports: Vec<Port<Started>>,
    queues: Queues,
    answered: Option<SentView>,
    finished: &mut Finished,
) -> Result<(), PortError> {
    let stopped = ports::stop(ports, queues.rx, queues.tx);
    if let Some(answered) = answered {
        finished.sink.answer.settle(answered.errors());
    }
    stopped
}

/// The queues of the trigger's loop and of its receive loops, and the counts of the one with the answers.
fn queues(finished: &mut Finished, received: Vec<RxQueue>) -> (Queues, Option<SentView>) {
    let own = finished.inputs.drain(..).filter_map(Input::into_queue);
    let answered = finished.sink.answers();
    let endpoints = finished.sink.endpoints.drain(..);
    let queues = Queues {
        rx: own.chain(received).collect(),
        tx: endpoints.filter_map(PortEndpoint::into_tx).collect(),
    };
    (queues, answered)
}

/// The loops, their CPUs, and whether those are isolated; logs the remedy if not.
fn cores(plan: &Plan) -> Vec<CoreReport> {
    let mut cores = vec![("trigger".to_owned(), plan.trigger_cpu)];
    if plan.emulator.is_some() {
        cores.push(("emulator".into(), plan.emulator_cpu));
    }
    let workers = plan.worker_cpus.iter().enumerate();
    cores.extend(workers.map(|(n, &cpu)| (worker::name(n), cpu)));
    let receivers = plan.receive_cpus.iter().enumerate();
    cores.extend(receivers.map(|(n, &cpu)| (receive_loop::name(n), cpu)));
    let check = |(role, cpu): (String, Option<usize>)| CoreReport {
        isolated: cpu.is_some_and(|cpu| lcore::check_isolation(&role, cpu)),
        role,
        cpu,
    };
    cores.into_iter().map(check).collect()
}
