//! Two ports back to back, and the ledger of the frames between them.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use pollux_interop::exchange::{Exchange, Job};
use pollux_interop::frames::{Frames, Kind, Returned};
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::ledger::{Balance, SentView};
use pollux_pmd::mempool::{Mempool, PoolConfig};
use pollux_pmd::net::{MacAddr, UdpEndpoint};
use pollux_pmd::port::{Configured, Started};
use pollux_pmd::{Ledger, Port, PortConfig, RxQueue, StartedPort, Tally, TxQueue};

use crate::bench::Bench;
use crate::nic::Owner;
use crate::nic::{Nic, PATIENCE, wait_until};

/// One end: a started port.
pub(crate) struct End {
    pub(crate) port: Port<Started>,
    pub(crate) rx: Vec<RxQueue>,
    pub(crate) tx: Vec<TxQueue>,
}

/// Direction of frames.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    AtoB,
    BtoA,
}

impl Direction {
    /// The sender, and the receiver.
    pub(crate) fn of<T>(self, a: T, b: T) -> (T, T) {
        match self {
            Self::AtoB => (a, b),
            Self::BtoA => (b, a),
        }
    }
}

pub(crate) const DIRECTIONS: [Direction; 2] = [Direction::AtoB, Direction::BtoA];

/// How the ports are set up.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    pub(crate) queues: u16,
    pub(crate) ring: usize,
    /// Buffers of the pool that both ports share.
    pub(crate) buffers: usize,
    /// Checksums may be left to the devices.
    pub(crate) checksum_offload: bool,
    /// More options of both specs, with a comma in front.
    pub(crate) options: &'a str,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            queues: 1,
            ring: 512,
            buffers: 4096,
            checksum_offload: false,
            options: "",
        }
    }
}

pub(crate) struct Rig {
    pub(crate) a: End,
    pub(crate) b: End,
    pub(crate) pool: Mempool,
    pub(crate) ledger: Ledger,
}

/// Addresses of the two ends.
pub(crate) const IP_A: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
pub(crate) const IP_B: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

/// A station with a UDP port at these addresses.
pub(crate) fn endpoint(mac: MacAddr, address: Ipv4Addr) -> UdpEndpoint {
    UdpEndpoint {
        mac,
        socket: SocketAddrV4::new(address, 9000),
    }
}

pub(crate) fn pool(buffers: usize) -> Result<Mempool> {
    Ok(Mempool::new(PoolConfig {
        buffers,
        ..PoolConfig::default()
    })?)
}

/// So many frames, each of which comes back to its sender, or to the other end.
pub(crate) fn job(count: u64) -> Job {
    Job {
        send: count,
        receive: count,
        window: 64,
        patience: PATIENCE,
        limit: None,
        tolerate_loss: false,
        pause: Duration::ZERO,
    }
}

impl End {
    /// Opens and starts the port on a NIC, and waits until its link is up.
    pub(crate) fn open(owner: Owner, nic: &Nic, pool: &Mempool, setup: Setup<'_>) -> Result<Self> {
        let end = Self::configure(owner, nic, pool, setup)?;
        Self::start(end)
    }

    fn configure(
        owner: Owner,
        nic: &Nic,
        pool: &Mempool,
        setup: Setup<'_>,
    ) -> Result<Port<Configured>> {
        let config = PortConfig {
            rx_queues: setup.queues,
            tx_queues: setup.queues,
            ring: setup.ring,
            checksum_offload: setup.checksum_offload,
            ..PortConfig::new(pool.clone())
        };
        let spec = owner.spec(nic)? + setup.options;
        Ok(pollux_app::ports::registry()
            .open(&spec)?
            .configure(config)?)
    }

    pub(crate) fn start(port: Port<Configured>) -> Result<Self> {
        let [end] = Self::start_all([port])?;
        Ok(end)
    }

    /// They wait for their links together: that of QEMU's 82576 takes half a second.
    fn start_all<const N: usize>(ports: [Port<Configured>; N]) -> Result<[Self; N]> {
        let mut ends = Vec::new();
        for port in ports {
            let StartedPort { port, rx, tx } = port.start()?;
            ends.push(Self { port, rx, tx });
        }
        for Self { port, .. } in &ends {
            wait_until("the link is up", || port.link().up).context(port.spec().to_owned())?;
        }
        ends.try_into().map_err(|_| anyhow!("an end is missing"))
    }

    /// Both ends.
    pub(crate) fn open_both(bench: &Bench, pool: &Mempool, setup: Setup<'_>) -> Result<[Self; 2]> {
        let owner = bench.machine.owner;
        Self::start_all([
            Self::configure(owner, &bench.a, pool, setup)?,
            Self::configure(owner, &bench.b, pool, setup)?,
        ])
    }

    /// Adds the tallies of this port's receive queues to the ledger, and one for the consumer of
    /// its frames.
    pub(crate) fn count_into(&self, ledger: &mut Ledger) -> Tally {
        for queue in &self.rx {
            ledger.add("port", queue.tally());
        }
        let tally = Tally::new();
        ledger.add("loop", tally.view());
        tally
    }

    pub(crate) fn mac(&self) -> Result<MacAddr> {
        let mac = self.port.capabilities().mac;
        mac.with_context(|| format!("{} has no address", self.port.spec()))
    }

    /// Sends frames to a station that sends them back; each must come.
    pub(crate) fn exchange_with_reflector(
        &mut self,
        station: MacAddr,
        pool: &Mempool,
        ledger: &mut Ledger,
        count: u64,
    ) -> Result<()> {
        for queue in &self.rx {
            ledger.add("port", queue.tally());
        }
        let ends = (endpoint(self.mac()?, IP_A), endpoint(station, IP_B));
        let mut frames = Frames::new(ends, Kind::Udp, 1, &[64, 1518, 9018], Returned::Forwarded)?;
        let exchange = Exchange::new(pool, &mut self.rx, &mut self.tx, ledger)?;
        let outcome = exchange.run(&job(count), &mut frames, &StopFlag::new())?;
        ensure!(
            outcome.received == count && outcome.corrupt + outcome.duplicate + outcome.foreign == 0,
            "{}; {}; the device: {}",
            serde_json::to_string(&outcome)?,
            ledger.balance(),
            self.counted()
        );
        Ok(())
    }

    /// Stops the port.
    pub(crate) fn stop(mut self) -> Result<Port<Configured>> {
        for queue in &mut self.rx {
            queue.sync_counters();
        }
        let Self { port, rx, tx } = self;
        Ok(port.stop(rx, tx)?)
    }

    /// Stops the port, which has lost nothing: what its device counted since the start must be
    /// what its queues counted. How many frames they received and sent.
    pub(crate) fn stop_and_compare(self) -> Result<[u64; 2]> {
        let (spec, capabilities) = (self.port.spec().to_owned(), self.port.capabilities());
        let statistics = self.port.statistics();
        let received: Vec<_> = self.rx.iter().map(RxQueue::tally).collect();
        let sent: Vec<_> = self.tx.iter().map(TxQueue::sent).collect();
        // Frames count as sent when the device has said so, at the stop if not before.
        drop(self.stop()?);
        let received: u64 = received.iter().map(|rx| rx.balance().from_wire).sum();
        let sent: u64 = sent.iter().map(SentView::packets).sum();
        // An interface's counters include earlier frames, and virtio's devices have none.
        let counts = statistics.iter().any(|(name, _)| name.starts_with("rx_"));
        if capabilities.kernel_backed || !counts {
            println!("{spec}: received {received}, sent {sent}: compared with nothing");
            return Ok([received, sent]);
        }
        let mut compared = 0;
        for (name, theirs) in statistics {
            let ours = match name.as_ref() {
                "rx_packets" | "rx_good_packets" => received,
                "tx_packets" | "tx_good_packets" => sent,
                _ => continue,
            };
            ensure!(
                ours == theirs,
                "{spec}: the device's {name} is {theirs}, but its queues counted {ours}"
            );
            compared += 1;
        }
        ensure!(
            compared == 2,
            "{spec}: of what the device counts {compared} were compared, not 2"
        );
        Ok([received, sent])
    }

    /// A counter of the device.
    fn counter(&self, wanted: &str) -> u64 {
        let statistics = self.port.statistics();
        let found = statistics.iter().find(|(name, _)| *name == wanted);
        found.map_or(0, |(_, count)| *count)
    }

    /// What the device has counted, without zeros, and how many frames its queues could not send.
    fn counted(&self) -> String {
        let statistics = self.port.statistics();
        let counters = statistics.iter().filter(|(_, count)| *count > 0);
        let mut words: Vec<_> = counters
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        let errors: u64 = self.tx.iter().map(|tx| tx.sent().errors()).sum();
        words.push(format!("errors {errors}"));
        words.join(", ")
    }
}

impl Rig {
    pub(crate) fn open(bench: &Bench, setup: Setup<'_>) -> Result<Self> {
        let pool = pool(setup.buffers)?;
        let [a, b] = End::open_both(bench, &pool, setup)?;
        Ok(Self::of(a, b, pool))
    }

    /// Two ports that are open, with buffers of one pool.
    pub(crate) fn of(a: End, b: End, pool: Mempool) -> Self {
        let mut ledger = Ledger::new();
        for queue in a.rx.iter().chain(&b.rx) {
            ledger.add("port", queue.tally());
        }
        Self { a, b, pool, ledger }
    }

    /// Stops port `a` and starts it again, so many times; waits for its link the last time.
    pub(crate) fn restart_a(mut self, times: u32) -> Result<Self> {
        let mut port = self.a.stop()?;
        for _ in 1..times {
            let StartedPort {
                port: started,
                rx,
                tx,
            } = port.start()?;
            for queue in &rx {
                self.ledger.add("port", queue.tally());
            }
            port = started.stop(rx, tx)?;
        }
        self.a = End::start(port)?;
        for queue in &self.a.rx {
            self.ledger.add("port", queue.tally());
        }
        Ok(self)
    }

    /// Sends frames of these sizes (in bytes, with the frame check sequence) in one direction, by
    /// turns through all queues; each must come, right in every byte, unless kernels on both sides
    /// say that it was lost between them.
    pub(crate) fn exchange(
        &mut self,
        direction: Direction,
        count: u64,
        sizes: &[usize],
    ) -> Result<()> {
        self.exchange_from(IP_A, direction, count, sizes)
    }

    /// The same, from an address.
    pub(crate) fn exchange_from(
        &mut self,
        near: Ipv4Addr,
        direction: Direction,
        count: u64,
        sizes: &[usize],
    ) -> Result<()> {
        let (from, to) = direction.of(&mut self.a, &mut self.b);
        let ends = (endpoint(from.mac()?, near), endpoint(to.mac()?, IP_B));
        let mut frames = Frames::new(ends, Kind::Udp, 1, sizes, Returned::Same)?;
        let before = (from.counter("tx_packets"), to.counter("rx_packets"));
        let exchange = Exchange::new(&self.pool, &mut to.rx, &mut from.tx, &mut self.ledger)?;
        let outcome = exchange.run(&job(count), &mut frames, &StopFlag::new())?;
        // What a kernel has taken from a port it may lose (a driver that resets its device drops
        // what is in its ring), and only the counters of its interfaces tell.
        let arrived = if from.port.capabilities().kernel_backed {
            let went = from.counter("tx_packets") - before.0;
            let came = to.counter("rx_packets") - before.1;
            if came < count {
                println!("{direction:?}: of {count} frames {went} went, {came} came");
            }
            ensure!(
                came <= went,
                "{direction:?}: {went} frames went, but {came} came"
            );
            came
        } else {
            count
        };
        ensure!(
            (outcome.sent, outcome.received) == (count, arrived)
                && outcome.corrupt + outcome.duplicate + outcome.foreign == 0,
            "{direction:?}: {}; {}; devices: a {}, b {}",
            serde_json::to_string(&outcome)?,
            self.ledger.balance(),
            self.a.counted(),
            self.b.counted()
        );
        Ok(())
    }

    /// Stops both ports, between which no frame may have been lost. The devices must have counted
    /// as we did, the ledger must balance, and the pool be full again.
    pub(crate) fn finish(self) -> Result<()> {
        let balance = self.finish_with_drops()?;
        ensure!(balance.dropped_total() == 0, "frames were lost: {balance}");
        Ok(())
    }

    /// The same, where frames that came are meant to be dropped.
    pub(crate) fn finish_with_drops(self) -> Result<Balance> {
        let Self { a, b, pool, ledger } = self;
        a.stop_and_compare()?;
        b.stop_and_compare()?;
        check_ledger(&pool, &ledger)?;
        Ok(ledger.balance())
    }

    /// Stops both ports. The ledger must balance, and the pool be full again.
    pub(crate) fn close(self) -> Result<()> {
        let Self { a, b, pool, ledger } = self;
        drop((a.stop()?, b.stop()?));
        check_ledger(&pool, &ledger)
    }
}

/// At a stop.
pub(crate) fn check_ledger(pool: &Mempool, ledger: &Ledger) -> Result<()> {
    println!("{}", ledger.check()?);
    ensure!(
        pool.available() == pool.buffers(),
        "{} of {} buffers are in the pool after the stop",
        pool.available(),
        pool.buffers()
    );
    Ok(())
}
