//! `pollux rdma serve` and `pollux rdma ping`: the other end of programs for RDMA.

mod args;
mod host;
mod manager;
mod requests;
mod rping;

use std::fmt;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use pollux_app::{Failure, LedgerReport};
use pollux_pmd::Registry;
use pollux_rdma::cm::ConnectionId;
use pollux_rdma::exchange::perftest::{Keys, Over, Report as Measured, Role, Session, Test};
use pollux_rdma::exchange::{Channel, Listener, Messages, Stream, pingpong};
use pollux_rdma::{
    ConnectError, Key, Mtu, Operation, PathOptions, QpOptions, QueuePair, RemoteBuffer,
};
use serde::Serialize;

use self::args::Options;
use self::args::Program;
use self::host::Host;
use self::manager::Manager;
use self::requests::{Area, Job, Work};
use super::counts::Counts;

/// READs that this end answers at a time.
const READS: u8 = 16;
/// Requests at a time of the programs that measure rates.
const DEPTH: u64 = QueuePair::REQUESTS as u64;
/// Where nothing is accessed.
const NOWHERE: RemoteBuffer = RemoteBuffer {
    address: 0,
    key: Key(0),
};
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
    if options.cm || options.program == Program::Rping {
        return managed(options, role, host);
    }
    let channel = match role {
        Role::Client => Channel::connect(options.at, options.patience)?,
        Role::Server => {
            let listener = Listener::bind(options.at)?;
            announce(listener.address()?)?;
            listener.accept(options.patience)?
        }
    };
    match options.program.test() {
        None => pingpong(options, role, host, channel),
        Some(test) => {
            let opened = Session::open(channel, test, role, Over::Tcp, options.mtu);
            let (session, common) = opened.context("the exchange with perftest failed")?;
            let (area, mut qp) = parts(options, host, common.cycle)?;
            let path = path(options, common.mtu);
            let connect = |qp: &_, peer: &Keys| {
                let gets = peer.reads.clamp(1, READS);
                let path = PathOptions { gets, ..path };
                host.endpoint.connect(qp, &peer.qp, &path)
            };
            perftest(options, role, test, session, (&area, &mut qp), connect)
        }
    }
}

/// Says that the server can be reached.
fn announce(at: SocketAddr) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "ready at {at}")?;
    out.flush()?;
    Ok(())
}

fn path(options: &Options, mtu: Mtu) -> PathOptions {
    PathOptions {
        mtu,
        timeout: options.timeout,
        ..PathOptions::default()
    }
}

/// The memory, and the queue pair with its receives.
fn parts(options: &Options, host: &mut Host, cycle: u32) -> anyhow::Result<(Area, QueuePair)> {
    let area = Area::new(&mut host.endpoint, options.bytes, cycle)?;
    let created = host.endpoint.create_queue_pair(&QpOptions {
        kind: options.kind(),
        ..QpOptions::default()
    });
    let mut qp = created?;
    area.post_receives(&mut qp)?;
    Ok((area, qp))
}

fn pingpong<S: Stream>(
    options: &Options,
    role: Role,
    host: &mut Host,
    mut channel: Channel<S>,
) -> anyhow::Result<Duration> {
    let (area, mut qp) = parts(options, host, 1)?;
    let (own, path) = (qp.address(), path(options, options.mtu));
    let connect = |peer: &_| host.endpoint.connect(&qp, peer, &path);
    match role {
        Role::Client => pingpong::client(&mut channel, &own, connect)?,
        Role::Server => pingpong::server(&mut channel, &own, connect)?,
    };
    let is_first = role == Role::Client;
    let took = work(options, &area, &mut qp, NOWHERE, |work| {
        work.run(Job::Echo { is_first })
    })?;
    std::thread::sleep(LINGER);
    Ok(took)
}

/// From the exchange of keys on.
fn perftest<S: Stream>(
    options: &Options,
    role: Role,
    test: Test,
    session: Session<S>,
    (area, qp): (&Area, &mut QueuePair),
    connect: impl FnOnce(&QueuePair, &Keys) -> Result<(), ConnectError>,
) -> anyhow::Result<Duration> {
    let keys = Keys {
        qp: qp.address(),
        reads: READS,
        buffer: area.buffer.remote(),
    };
    let ready = session.connect(&keys, |peer| connect(qp, peer))?;
    let remote = ready.peer().buffer;
    let took = work(options, area, qp, remote, |work| work.run(job(test, role)))?;
    ready.finish(&Measured::default(), options.patience)?;
    Ok(took)
}

/// The requests of an end; how long they took.
fn work(
    options: &Options,
    area: &Area,
    qp: &mut QueuePair,
    remote: RemoteBuffer,
    job: impl FnOnce(&mut Work<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    let mut work = Work::new(qp, area, remote, options.count, options.patience);
    job(&mut work)?;
    Ok(begin.elapsed())
}

/// Programs that connect by the connection manager.
fn managed(options: &Options, role: Role, host: &mut Host) -> anyhow::Result<Duration> {
    let IpAddr::V4(ip) = options.at.ip() else {
        bail!(
            "--at {}: the address of an endpoint is one of IPv4",
            options.at
        );
    };
    let to = (ip, options.at.port());
    let mut manager = Manager::new(&host.roce, options.ip, options.patience)?;
    if role == Role::Server {
        manager.listen(to.1);
        announce(options.at)?;
    }
    let path = path(options, options.mtu);
    let mut connect = |endpoint: &mut _, qp: &_| -> anyhow::Result<ConnectionId> {
        match role {
            Role::Client => manager.connect(endpoint, qp, path, to),
            Role::Server => manager.accept(endpoint, qp, path),
        }
    };
    let (area, mut qp) = parts(options, host, 1)?;
    let Some(test) = options.program.test() else {
        let id = connect(&mut host.endpoint, &qp)?;
        let is_server = role == Role::Server;
        let part = if is_server { rping::serve } else { rping::ping };
        let took = work(options, &area, &mut qp, NOWHERE, part)?;
        manager.end(vec![id], !is_server)?;
        return Ok(took);
    };
    let first = host.endpoint.create_queue_pair(&QpOptions::default())?;
    let stream = Messages::new(&mut host.endpoint, first)?;
    let mut ids = vec![connect(&mut host.endpoint, stream.queue_pair())?];
    let channel = Channel::new(stream, options.patience);
    let opened = Session::open(channel, test, role, Over::QueuePair, options.mtu);
    let (mut session, _) = opened.context("the exchange with perftest failed")?;
    let mut second = None;
    let exchanged = session.around(|| {
        let connected = connect(&mut host.endpoint, &qp);
        let is_connected = connected.is_ok();
        second = Some(connected);
        is_connected.then_some(()).ok_or(ConnectError::PeerGone)
    });
    // The connection manager says more of a failure than the exchange.
    ids.extend(second.transpose()?);
    exchanged?;
    let took = perftest(
        options,
        role,
        test,
        session,
        (&area, &mut qp),
        |_, _| Ok(()),
    )?;
    manager.end(ids, role == Role::Client)?;
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
