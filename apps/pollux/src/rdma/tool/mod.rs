//! `pollux rdma serve` and `pollux rdma ping`: the other end of programs for RDMA.

mod args;
mod host;
mod requests;

use std::fmt;
use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use pollux_app::{Failure, LedgerReport};
use pollux_pmd::Registry;
use pollux_rdma::exchange::perftest::{Keys, Over, Report as Measured, Role, Session, Test};
use pollux_rdma::exchange::{Channel, Listener, Stream, pingpong};
use pollux_rdma::{Key, Operation, PathOptions, QpOptions, QueuePair, RemoteBuffer};
use serde::Serialize;

use self::args::Options;
use self::host::Host;
use self::requests::{Area, Job, Work};
use super::counts::Counts;

/// READs that this end answers at a time.
const READS: u8 = 16;
/// Requests at a time of the programs that measure rates.
const DEPTH: u64 = QueuePair::REQUESTS as u64;
/// How long the endpoint answers repeated packets of a program that says nothing at its end.
const LINGER: Duration = Duration::from_millis(500);

/// Serve ibv_rc_pingpong, ibv_uc_pingpong or a program of perftest as its server
///
/// Addresses and keys are exchanged over TCP through the host's kernel, as the programs do. Their options
/// for the size and the number of messages, the MTU and the service have to be the same at both ends.
///
/// Example: pollux rdma serve af_packet:eth1 --ip 10.0.0.1 --at 10.0.0.9:18515 --as ib_write_bw --bytes 65536
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ServeArgs {
    #[command(flatten)]
    options: Options,
}

/// Be the client of ibv_rc_pingpong, ibv_uc_pingpong or a program of perftest
///
/// Addresses and keys are exchanged over TCP through the host's kernel, as the programs do. Their options
/// for the size and the number of messages, the MTU and the service have to be the same at both ends.
///
/// Example: pollux rdma ping af_packet:eth1 --ip 10.0.0.1 --at 10.0.0.9:18515 --as ibv_rc_pingpong
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct PingArgs {
    #[command(flatten)]
    options: Options,
}

/// Content of `--report`.
#[derive(Serialize)]
struct Report {
    command: &'static str,
    messages: u64,
    bytes: u32,
    seconds: f64,
    ledger: LedgerReport,
    rdma: Counts,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            messages,
            bytes,
            seconds,
            ..
        } = self;
        let rate = *messages as f64 * f64::from(*bytes) * 8e-9 / seconds;
        let each = seconds * 1e6 / *messages as f64;
        writeln!(
            f,
            "{messages} messages of {bytes} B in {seconds:.3} s: {rate:.3} Gb/s, {each:.1} us each"
        )?;
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
    let reports = options.report.outputs()?.ready()?;
    let mut host = Host::start(options, registry)?;
    let seconds = converse(options, role, &mut host);
    let (counts, ledger) = host.end()?;
    let report = Report {
        command: if role == Role::Server {
            "rdma serve"
        } else {
            "rdma ping"
        },
        messages: options.count,
        bytes: options.bytes,
        seconds: seconds?.as_secs_f64(),
        ledger,
        rdma: counts.into(),
    };
    reports.write(&report)?;
    Ok(())
}

/// The exchange, and what follows it; how long that took.
fn converse(options: &Options, role: Role, host: &mut Host) -> anyhow::Result<Duration> {
    let channel = match role {
        Role::Client => Channel::connect(options.at, options.patience)?,
        Role::Server => {
            let listener = Listener::bind(options.at)?;
            let mut out = std::io::stdout();
            writeln!(out, "ready at {}", listener.address()?)?;
            out.flush()?;
            listener.accept(options.patience)?
        }
    };
    match options.program.test() {
        None => pingpong(options, role, host, channel),
        Some(test) => perftest(options, role, test, host, channel),
    }
}

fn queue_pair(options: &Options, host: &mut Host) -> anyhow::Result<QueuePair> {
    let options = QpOptions {
        kind: options.kind(),
        ..QpOptions::default()
    };
    Ok(host.endpoint.create_queue_pair(&options)?)
}

fn pingpong<S: Stream>(
    options: &Options,
    role: Role,
    host: &mut Host,
    mut channel: Channel<S>,
) -> anyhow::Result<Duration> {
    let area = Area::new(&mut host.endpoint, options.bytes, 1)?;
    let mut qp = queue_pair(options, host)?;
    area.post_receives(&mut qp)?;
    let own = qp.address();
    let path = PathOptions {
        mtu: options.mtu,
        ..PathOptions::default()
    };
    let connect = |peer: &_| host.endpoint.connect(&qp, peer, &path);
    match role {
        Role::Client => pingpong::client(&mut channel, &own, connect)?,
        Role::Server => pingpong::server(&mut channel, &own, connect)?,
    };
    let nowhere = RemoteBuffer {
        address: 0,
        key: Key(0),
    };
    let is_first = role == Role::Client;
    let begin = Instant::now();
    let work = Work::new(&mut qp, &area, nowhere, options.count, options.patience);
    work.run(Job::Echo { is_first })?;
    let took = begin.elapsed();
    std::thread::sleep(LINGER);
    Ok(took)
}

fn perftest<S: Stream>(
    options: &Options,
    role: Role,
    test: Test,
    host: &mut Host,
    channel: Channel<S>,
) -> anyhow::Result<Duration> {
    let opened = Session::open(channel, test, role, Over::Tcp, options.mtu);
    let (session, common) = opened.context("the exchange with perftest failed")?;
    let area = Area::new(&mut host.endpoint, options.bytes, common.cycle)?;
    let mut qp = queue_pair(options, host)?;
    area.post_receives(&mut qp)?;
    let keys = Keys {
        qp: qp.address(),
        reads: READS,
        buffer: area.buffer.remote(),
    };
    let path = PathOptions {
        mtu: common.mtu,
        ..PathOptions::default()
    };
    let connect = |peer: &Keys| host.endpoint.connect(&qp, &peer.qp, &path);
    let ready = session.connect(&keys, connect)?;
    let remote = ready.peer().buffer;
    let begin = Instant::now();
    let work = Work::new(&mut qp, &area, remote, options.count, options.patience);
    work.run(job(test, role))?;
    let took = begin.elapsed();
    ready.finish(&Measured::default(), options.patience)?;
    Ok(took)
}

/// What an end of a program does.
fn job(test: Test, role: Role) -> Job {
    let is_client = role == Role::Client;
    let requests = |operation, depth| {
        if is_client {
            Job::Requests { operation, depth }
        } else {
            Job::Nothing
        }
    };
    match test {
        Test::SendBw if !is_client => Job::Receive,
        Test::SendBw => requests(Operation::Send, DEPTH),
        Test::SendLat => Job::Echo {
            is_first: is_client,
        },
        Test::WriteBw => requests(Operation::Put, DEPTH),
        // Its server begins.
        Test::WriteLat => Job::Putting {
            is_first: !is_client,
        },
        Test::ReadBw => requests(Operation::Get, DEPTH),
        Test::ReadLat => requests(Operation::Get, 1),
    }
}
