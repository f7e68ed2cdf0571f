//! `pollux rdma serve` and `pollux rdma ping`: the other end of programs for RDMA.

mod area;
mod args;
mod contents;
mod conversation;
mod host;
mod manager;
mod requests;
mod rping;
mod stop;

use std::fmt;

use anyhow::Context as _;
use pollux_app::{Failure, LedgerReport, NamedFile};
use pollux_pmd::Registry;
use pollux_rdma::exchange::perftest::Role;
use serde::Serialize;

use self::args::Options;
use self::conversation::Conversation;
use self::host::Host;
use self::stop::is_stop;
use super::counts::Counts;
use crate::supervisor::SCHEMA;

/// Serve ibv_rc_pingpong, ibv_uc_pingpong or a program of perftest as its server
///
/// Addresses and keys are exchanged over TCP through the host's kernel, as the programs do. Their options
/// for the size and the number of messages, the MTU and the service have to be the same at both ends.
/// Received bytes are compared where it is known what they must be: from the other end of this program, from
/// ibv_rc_pingpong, ibv_uc_pingpong, ib_write_lat and rping. SIGINT and SIGTERM end the run in order.
///
/// Example: pollux rdma serve af_packet:eth1 --ip 10.0.0.1 --at 10.0.0.9:18515 --as ib_write_bw --bytes 65536
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(
    after_help = "Exit status: 0 when all messages were exchanged, or the run was stopped by a signal, 1 when it failed or a byte was wrong, 2 on a wrong option."
)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    options: Options,
}

/// Be the client of ibv_rc_pingpong, ibv_uc_pingpong or a program of perftest
///
/// Addresses and keys are exchanged over TCP through the host's kernel, as the programs do. Their options
/// for the size and the number of messages, the MTU and the service have to be the same at both ends.
/// Received bytes are compared where it is known what they must be: from the other end of this program, from
/// ibv_rc_pingpong, ibv_uc_pingpong, ib_write_lat and rping. SIGINT and SIGTERM end the run in order.
///
/// Example: pollux rdma ping af_packet:eth1 --ip 10.0.0.1 --at 10.0.0.9:18515 --as ibv_rc_pingpong
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
#[command(
    after_help = "Exit status: 0 when all messages were exchanged, or the run was stopped by a signal, 1 when it failed or a byte was wrong, 2 on a wrong option."
)]
pub(super) struct PingArgs {
    #[command(flatten)]
    options: Options,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum End {
    Complete,
    Stopped,
    Failed,
}

/// Content of `--report`.
#[derive(Serialize)]
struct Report {
    schema: u32,
    command: &'static str,
    end: End,
    messages: u64,
    checked: u64,
    bytes: u32,
    seconds: f64,
    ledger: LedgerReport,
    rdma: Counts,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            end,
            messages,
            checked,
            bytes,
            seconds,
            ..
        } = self;
        if *end != End::Complete {
            writeln!(
                f,
                "the run has {}",
                if *end == End::Stopped {
                    "been stopped"
                } else {
                    "failed"
                }
            )?;
        }
        write!(f, "{messages} messages of {bytes} B in {seconds:.3} s")?;
        if *messages > 0 && *seconds > 0.0 {
            let rate = *messages as f64 * f64::from(*bytes) * 8e-9 / seconds;
            let each = seconds * 1e6 / *messages as f64;
            write!(f, ": {rate:.3} Gb/s, {each:.1} us each")?;
        }
        writeln!(f, "; the bytes of {checked} compared")?;
        writeln!(f, "packets   {}", self.rdma)
    }
}

pub(super) fn serve(args: &ServeArgs, registry: &Registry) -> Result<(), Failure> {
    run(&args.options, Role::Server, registry)
}

pub(super) fn ping(args: &PingArgs, registry: &Registry) -> Result<(), Failure> {
    run(&args.options, Role::Client, registry)
}

fn run(options: &Options, role: Role, registry: &Registry) -> Result<(), Failure> {
    let stop = pollux_app::stop_on_signals().context("cannot handle signals")?;
    let reports = options.report.outputs()?;
    reports.expect_beside(&NamedFile::of_port(options.port.spec()))?;
    let reports = reports.ready()?;
    let mut host = Host::start(options, registry)?;
    let mut conversation = Conversation::new(options, role, &stop);
    let done = conversation.run(&mut host);
    let progress = conversation.progress();
    let (counts, ledger) = host.end()?;
    let end = match &done {
        Ok(()) => End::Complete,
        Err(error) if is_stop(error) => End::Stopped,
        Err(_) => End::Failed,
    };
    let report = Report {
        schema: SCHEMA,
        command: match role {
            Role::Server => "rdma serve",
            Role::Client => "rdma ping",
        },
        end,
        messages: progress.messages,
        checked: progress.checked,
        bytes: options.bytes,
        seconds: progress.time.as_secs_f64(),
        ledger,
        rdma: counts.into(),
    };
    reports.tell(&report, |out| write!(out, "{report}"))?;
    if end != End::Stopped {
        done?;
    }
    Ok(())
}
