//! A conversation with a program: the exchange, and what follows it.

use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use pollux_pmd::lcore::StopFlag;
use pollux_rdma::cm::ConnectionId;
use pollux_rdma::exchange::perftest::{Hello, Keys, Over, Report as Measured, Role, Session, Test};
use pollux_rdma::exchange::{Channel, Listener, Messages, Patience, Stream, pingpong};
use pollux_rdma::{
    ConnectError, Key, Mtu, Operation, PathOptions, QpKind, QpOptions, QueuePair, RemoteBuffer,
};

use super::area::Area;
use super::args::{Options, Program};
use super::contents::{Contents, NOTE_OF_CONTENTS};
use super::host::Host;
use super::manager::Manager;
use super::requests::{Job, Limits, Work};
use super::rping;
use super::stop::is_stop;

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

/// What a conversation has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub(super) messages: u64,
    /// Messages whose bytes were compared.
    pub(super) checked: u64,
    /// Duration of the messages.
    pub(super) time: Duration,
}

/// One end of a conversation.
pub(super) struct Conversation<'a> {
    options: &'a Options,
    role: Role,
    stop: &'a StopFlag,
    progress: Progress,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(options: &'a Options, role: Role, stop: &'a StopFlag) -> Self {
        let progress = Progress::default();
        Self {
            options,
            role,
            stop,
            progress,
        }
    }

    pub(super) fn progress(&self) -> Progress {
        self.progress
    }

    /// The exchange, and what follows it.
    pub(super) fn run(&mut self, host: &mut Host) -> Result<()> {
        if self.options.cm || self.options.program == Program::Rping {
            return self.managed(host);
        }
        let (at, patience) = (self.options.at, self.patience());
        let channel = match self.role {
            Role::Client => Channel::connect(at, patience)?,
            Role::Server => {
                let listener = Listener::bind(at)?;
                announce(listener.address()?)?;
                listener.accept(patience)?
            }
        };
        match self.options.program.test() {
            None => self.pingpong(host, channel),
            Some(test) => {
                let opened = Session::open(channel, test, self.role, Over::Tcp, self.hello());
                let (session, common) = opened.context("the exchange with perftest failed")?;
                let contents = Contents::of(test, &common);
                let (area, mut qp) = self.parts(host, common.cycle, contents)?;
                let path = self.path(common.mtu);
                let connect = |host: &mut Host, qp: &_, peer: &Keys| {
                    let gets = peer.reads.clamp(1, READS);
                    let path = PathOptions { gets, ..path };
                    host.endpoint.connect(qp, &peer.qp, &path)
                };
                self.perftest(host, test, session, (&area, &mut qp), connect)
            }
        }
    }

    fn patience(&self) -> Patience {
        Patience::until(self.stop, self.options.patience)
    }

    fn hello(&self) -> Hello {
        Hello {
            mtu: self.options.mtu,
            note: NOTE_OF_CONTENTS,
        }
    }

    fn path(&self, mtu: Mtu) -> PathOptions {
        PathOptions {
            mtu,
            timeout: self.options.timeout,
            ..PathOptions::default()
        }
    }

    /// The memory, and the queue pair with its receives.
    fn parts(&self, host: &mut Host, cycle: u32, contents: Contents) -> Result<(Area, QueuePair)> {
        let test = self.options.program.test();
        let is_read = matches!(test, Some(Test::ReadBw | Test::ReadLat));
        let size = (self.options.bytes, cycle);
        let area = Area::new(&mut host.endpoint, size, contents, is_read)?;
        let created = host.endpoint.create_queue_pair(&QpOptions {
            kind: self.options.kind(),
            ..QpOptions::default()
        });
        let mut qp = created?;
        // What READs fetch goes where messages do otherwise.
        if !is_read {
            area.post_receives(&mut qp)?;
        }
        Ok((area, qp))
    }

    fn pingpong<S: Stream>(&mut self, host: &mut Host, mut channel: Channel<S>) -> Result<()> {
        let (area, mut qp) = self.parts(host, 1, Contents::Pingpong)?;
        let (own, path) = (qp.address(), self.path(self.options.mtu));
        let connect = |peer: &_| host.endpoint.connect(&qp, peer, &path);
        match self.role {
            Role::Client => pingpong::client(&mut channel, &own, connect)?,
            Role::Server => pingpong::server(&mut channel, &own, connect)?,
        };
        let is_first = self.role == Role::Client;
        self.work(host, (&area, &mut qp), NOWHERE, |work| {
            work.run(Job::Echo { is_first })
        })?;
        std::thread::sleep(pollux_app::patience(LINGER));
        Ok(())
    }

    /// From the exchange of keys on.
    fn perftest<S: Stream>(
        &mut self,
        host: &mut Host,
        test: Test,
        session: Session<S>,
        (area, qp): (&Area, &mut QueuePair),
        connect: impl FnOnce(&mut Host, &QueuePair, &Keys) -> Result<(), ConnectError>,
    ) -> Result<()> {
        let keys = Keys {
            qp: qp.address(),
            reads: READS,
            buffer: area.buffer.remote(),
        };
        let ready = session.connect(&keys, |peer| connect(host, qp, peer))?;
        let remote = ready.peer().buffer;
        let begin = Instant::now();
        let job = job(test, self.role);
        if let Some(job) = job {
            self.work(host, (area, qp), remote, |work| work.run(job))?;
        }
        ready.finish(&Measured::default(), self.options.patience)?;
        if job.is_none() {
            self.progress.messages = self.options.count;
            self.progress.time = begin.elapsed();
        }
        // An unreliable connection may have lost the last one.
        let is_target = test == Test::WriteBw && self.role == Role::Server;
        if is_target && area.contents().is_known() && qp.kind() == QpKind::Reliable {
            area.check_last_put().context("the last PUT")?;
            self.progress.checked += 1;
        }
        Ok(())
    }

    /// The requests of an end.
    fn work(
        &mut self,
        host: &mut Host,
        (area, qp): (&Area, &mut QueuePair),
        remote: RemoteBuffer,
        job: impl FnOnce(&mut Work<'_>) -> Result<()>,
    ) -> Result<()> {
        let limits = Limits {
            stop: self.stop,
            patience: self.options.patience,
        };
        let count = self.options.count;
        let (done, progress) = host.foreground(|poller| {
            let begin = Instant::now();
            let mut work = Work::new(poller, qp, area, remote, count, &limits);
            let done = job(&mut work);
            let progress = Progress {
                messages: if done.is_ok() { count } else { work.messages() },
                checked: work.checked(),
                time: begin.elapsed(),
            };
            (done, progress)
        })?;
        self.progress = progress;
        done
    }

    /// Programs that connect by the connection manager.
    fn managed(&mut self, host: &mut Host) -> Result<()> {
        let options = self.options;
        let mut manager = Manager::new(&host.roce, options.ip, options.patience, self.stop)?;
        let mut ids = Vec::new();
        let done = self.connected(host, &mut manager, &mut ids);
        if done.as_ref().err().is_none_or(is_stop) {
            // A program that is stopped tells its peer.
            manager.end(ids, self.role == Role::Client || done.is_err())?;
        }
        done
    }

    /// The connections, and what goes over them.
    fn connected(
        &mut self,
        host: &mut Host,
        manager: &mut Manager,
        ids: &mut Vec<ConnectionId>,
    ) -> Result<()> {
        let (role, at) = (self.role, self.options.at);
        let IpAddr::V4(ip) = at.ip() else {
            bail!("--at {at}: the address of an endpoint is one of IPv4");
        };
        let to = (ip, at.port());
        if role == Role::Server {
            manager.listen(to.1);
            announce(at)?;
        }
        let path = self.path(self.options.mtu);
        let mut connect = |endpoint: &mut _, qp: &_| -> Result<()> {
            ids.push(match role {
                Role::Client => manager.connect(endpoint, qp, path, to)?,
                Role::Server => manager.accept(endpoint, qp, path)?,
            });
            Ok(())
        };
        let Some(test) = self.options.program.test() else {
            let (area, mut qp) = self.parts(host, 1, Contents::Random)?;
            connect(&mut host.endpoint, &qp)?;
            let part = match role {
                Role::Server => rping::serve,
                Role::Client => rping::ping,
            };
            return self.work(host, (&area, &mut qp), NOWHERE, part);
        };
        let first = host.endpoint.create_queue_pair(&QpOptions::default())?;
        let stream = Messages::new(&mut host.endpoint, first)?;
        connect(&mut host.endpoint, stream.queue_pair())?;
        let channel = Channel::new(stream, self.patience());
        let opened = Session::open(channel, test, role, Over::QueuePair, self.hello());
        let (mut session, common) = opened.context("the exchange with perftest failed")?;
        let contents = Contents::of(test, &common);
        let (area, mut qp) = self.parts(host, common.cycle, contents)?;
        let mut second = Ok(());
        let exchanged = session.around(|| {
            second = connect(&mut host.endpoint, &qp);
            second.is_ok().then_some(()).ok_or(ConnectError::PeerGone)
        });
        // The connection manager says more of a failure than the exchange.
        second?;
        exchanged?;
        self.perftest(host, test, session, (&area, &mut qp), |_, _, _| Ok(()))
    }
}

/// Says that the server can be reached.
fn announce(at: SocketAddr) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "ready at {at}")?;
    out.flush()?;
    Ok(())
}

/// What an end of a program does; `None` if its peer does it all.
fn job(test: Test, role: Role) -> Option<Job> {
    let is_client = role == Role::Client;
    let requests = |operation, depth| is_client.then_some(Job::Requests { operation, depth });
    match test {
        Test::SendBw if !is_client => Some(Job::Receive),
        Test::SendBw => requests(Operation::Send, DEPTH),
        Test::SendLat => Some(Job::Echo {
            is_first: is_client,
        }),
        Test::WriteBw => requests(Operation::Put, DEPTH),
        // Its server begins.
        Test::WriteLat => Some(Job::Putting {
            is_first: !is_client,
        }),
        Test::ReadBw => requests(Operation::Get, DEPTH),
        Test::ReadLat => requests(Operation::Get, 1),
    }
}
