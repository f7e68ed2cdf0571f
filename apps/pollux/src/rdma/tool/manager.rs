//! Connections by the connection manager: its datagrams pass between it and the endpoint.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::mempool::time::Ns;
use pollux_rdma::cm::{
    CmEvent, CmOptions, ConnectionId, ConnectionManager, Failure, Offer, Reason,
};
use pollux_rdma::roce::RoceEndpoint;
use pollux_rdma::{Endpoint, PathOptions, QueuePair};

use super::stop::expect_no_stop;

/// Interval at which datagrams are looked for.
const LOOK: Duration = Duration::from_millis(1);
/// Pause before a host is asked again.
const RETRY: Duration = Duration::from_millis(50);
/// READs that this end answers at a time.
const ANSWERS: u8 = 16;
/// How long an end is waited for, which the peer may have forgotten.
const PARTING: Duration = Duration::from_secs(5);

/// The connection manager of an endpoint.
pub(super) struct Manager {
    connections: ConnectionManager,
    endpoint: RoceEndpoint,
    begin: Instant,
    deadline: Instant,
    stop: StopFlag,
}

impl Manager {
    pub(super) fn new(
        endpoint: &RoceEndpoint,
        ip: Ipv4Addr,
        patience: Duration,
        stop: &StopFlag,
    ) -> Result<Self> {
        let begin = Instant::now();
        Ok(Self {
            connections: ConnectionManager::new(CmOptions::new(ip))?,
            endpoint: endpoint.clone(),
            begin,
            deadline: begin + patience,
            stop: stop.clone(),
        })
    }

    pub(super) fn listen(&mut self, port: u16) {
        self.connections.listen(port);
    }

    fn now(&self) -> Ns {
        Ns(self.begin.elapsed().as_nanos() as u64)
    }

    /// Passes datagrams both ways.
    fn pass(&mut self) {
        let now = self.now();
        while let Some(mad) = self.endpoint.receive_mad() {
            self.connections.receive(&mad, now);
        }
        self.connections.poll(now);
        while let Some(mad) = self.connections.transmit() {
            // If there is no room it is as if it were lost.
            let _ = self.endpoint.send_mad(&mad);
        }
    }

    /// The next event, unless `is_over` is true before it.
    fn event(&mut self, mut is_over: impl FnMut() -> Result<bool>) -> Result<Option<CmEvent>> {
        while !is_over()? {
            self.pass();
            if let Some(event) = self.connections.event() {
                // What it had to say on the way.
                self.pass();
                return Ok(Some(event));
            }
            std::thread::sleep(LOOK);
        }
        Ok(None)
    }

    /// The next event before the deadline.
    fn event_in_time(&mut self) -> Result<Option<CmEvent>> {
        let (stop, deadline) = (self.stop.clone(), self.deadline);
        self.event(|| {
            expect_no_stop(&stop)?;
            Ok(Instant::now() >= deadline)
        })
    }

    /// Connects a queue pair to a port of a host, where a program may begin to listen later.
    pub(super) fn connect(
        &mut self,
        endpoint: &mut Endpoint,
        qp: &QueuePair,
        path: PathOptions,
        (host, port): (Ipv4Addr, u16),
    ) -> Result<ConnectionId> {
        loop {
            let (offer, now) = (offer(qp, path), self.now());
            let id = self.connections.connect(host, port, &offer, &[], now)?;
            match self.event_in_time()? {
                Some(CmEvent::Accepted { agreed, .. }) => {
                    endpoint.connect(qp, &agreed.peer, &agreed.path)?;
                    self.connections.confirm(id, self.now())?;
                    self.pass();
                    return Ok(id);
                }
                Some(CmEvent::Failed { why, .. }) if listens_later(&why) => {
                    std::thread::sleep(RETRY);
                }
                Some(CmEvent::Failed { why, .. }) => bail!("no connection to {host}:{port}: {why}"),
                _ => bail!("no connection to {host}:{port} in time"),
            }
        }
    }

    /// Waits for a connection to a port that is listened at.
    pub(super) fn accept(
        &mut self,
        endpoint: &mut Endpoint,
        qp: &QueuePair,
        path: PathOptions,
    ) -> Result<ConnectionId> {
        let event = self.event_in_time()?;
        let Some(CmEvent::Requested { id, .. }) = event else {
            bail!("no peer asked for a connection in time");
        };
        let agreed = self.connections.accept(id, &offer(qp, path), &[])?;
        endpoint.connect(qp, &agreed.peer, &agreed.path)?;
        self.connections.confirm(id, self.now())?;
        match self.event_in_time()? {
            Some(CmEvent::Established { .. }) => Ok(id),
            Some(CmEvent::Failed { why, .. }) => bail!("a peer asked for a connection: {why}"),
            _ => bail!("a peer asked for a connection, and did not confirm it in time"),
        }
    }

    /// Ends the connections, or waits for their end.
    pub(super) fn end(&mut self, mut ids: Vec<ConnectionId>, is_active: bool) -> Result<()> {
        if is_active {
            let now = self.now();
            for &id in &ids {
                self.connections.disconnect(id, now)?;
            }
        }
        let begin = Instant::now();
        // A peer that has gone needs no farewell.
        while !ids.is_empty()
            && let Some(event) =
                self.event(|| Ok(begin.elapsed() >= pollux_app::patience(PARTING)))?
        {
            if let CmEvent::Disconnected { id } = event {
                ids.retain(|&open| open != id);
            }
        }
        Ok(())
    }
}

/// Whether the peer's host is there, without a program at the port.
fn listens_later(why: &Failure) -> bool {
    matches!(why, Failure::Rejected { reason, .. } if *reason == Reason::INVALID_SERVICE)
}

fn offer(qp: &QueuePair, path: PathOptions) -> Offer {
    Offer {
        qp: qp.number(),
        path,
        answers: ANSWERS,
    }
}
