//! Ports of a run: opened, started, and their queues given to the loops.

use anyhow::{Context as _, Result, ensure};
use pollux_app::ports;
use pollux_mempool::Mempool;
use pollux_pmd::Ledger;
use pollux_pmd::endpoint::{Classifier, Receiver};
use pollux_pmd::net::ParseOptions;
use pollux_pmd::port::{Configured, Port, PortConfig, Started, StartedPort};
use pollux_pmd::stream::{DemuxBuilder, StreamId};

use super::opened::Opened;
use super::packets::{Input, PacketReception};
use super::place::Place;
use super::plan::Plan;
use super::rdma::{self, RdmaView, Sources};
use super::reception::Reception;

/// Free buffers that a loop keeps for itself.
const CACHE: usize = 256;

/// Opens and starts all ports. All are configured before any is started: one that is wrong leaves no
/// trace of the others.
pub fn open(plan: &Plan, pool: &Mempool) -> Result<Vec<Opened>> {
    let registry = ports::registry();
    let probed = ports::open(&registry, &plan.ports)?;
    let mut configured = Vec::new();
    for port in probed {
        let rx_queues = match plan.options.rdma {
            Some(_) => 1,
            None => ports::rx_queues(&port, plan.options.queues),
        };
        let tx_queues = port.capabilities().max_tx_queues.min(1);
        configured.push(port.configure(PortConfig {
            rx_queues,
            tx_queues,
            ring: plan.config.memory.ring,
            ..PortConfig::new(pool.clone())
        })?);
    }
    let start = |port: Port<Configured>| {
        let offered = port.capabilities();
        let StartedPort { port, rx, tx } = port.start()?;
        Ok(Opened {
            port,
            offered,
            rx,
            tx,
        })
    };
    configured.into_iter().map(start).collect()
}

/// The ports, and their queues in the hands of the loops.
pub struct HandedOut<L> {
    pub ports: Vec<Port<Started>>,
    pub receptions: Vec<Reception<L>>,
    /// The sources of stacks that are written into memory, and counters, instead of packets.
    pub rdma: Option<(Sources, RdmaView)>,
}

/// Gives the queues of the ports to the receive loops in turn. The first loop has the ports' transmit
/// queues, and answers ARP and ping.
pub fn receptions<L: Place>(
    plan: &Plan,
    pool: &Mempool,
    opened: Vec<Opened>,
    place: L,
    ledger: &mut Ledger,
) -> Result<HandedOut<L>> {
    if let Some(listen) = plan.options.rdma {
        let opened = opened.into_iter().next().context("--rdma: no port")?;
        let parts = rdma::open(plan, listen, pool, opened, place, ledger)?;
        return Ok(HandedOut {
            ports: vec![parts.port],
            receptions: vec![Reception::Stacks(parts.reception)],
            rdma: Some((parts.sources, parts.view)),
        });
    }
    let loops = plan.receive_cpus.len().max(1);
    let mut inputs: Vec<Vec<Input>> = (0..loops).map(|_| Vec::new()).collect();
    let (mut started, mut hosts, mut queue) = (Vec::new(), Vec::new(), 0);
    for (port, opened) in opened.into_iter().enumerate() {
        for rx in opened.rx {
            ledger.add(
                format!("{} queue {}", opened.port.spec(), rx.queue()),
                rx.tally(),
            );
            inputs[queue % loops].push(Input { rx, port });
            queue += 1;
        }
        let tx = opened.tx.into_iter().next();
        hosts.push((opened.offered, tx));
        started.push(opened.port);
    }
    ensure!(
        queue >= loops,
        "--rx-loops {loops}: the ports have {queue} receive queues, and each loop needs one: fewer \
         loops, --queues, or rps=N in the spec of a port whose device has one queue"
    );
    let recorded = hosts.iter().any(|(offered, _)| offered.recorded);
    ensure!(
        !recorded || queue == 1,
        "a recording is received by one queue: give one port, without --queues"
    );
    let mut places = Vec::new();
    for _ in 1..loops {
        places.push(place.for_another_loop()?);
    }
    places.insert(0, place);
    let mut receptions = Vec::new();
    for (n, (inputs, place)) in inputs.into_iter().zip(places).enumerate() {
        let classifier = Classifier::new(ParseOptions::default());
        let ports = plan.config.ports(&plan.layout).enumerate();
        let demux = ports.fold(DemuxBuilder::new(), |demux, (sender, port)| {
            demux.port(port, StreamId(sender as u16))
        });
        let receiver = Receiver::new(classifier, demux.build()?, None);
        ledger.add(format!("receive {n}"), receiver.view());
        ledger.add(format!("place {n}"), place.view());
        let hosts: Vec<_> = hosts
            .iter_mut()
            .map(|(offered, tx)| (offered.clone(), tx.take()))
            .collect();
        let cache = pool.cache(CACHE)?;
        let ip = plan.config.detector.ip;
        let packets = PacketReception::new(inputs, hosts, ip, receiver, cache, place);
        receptions.push(Reception::Packets(packets));
    }
    Ok(HandedOut {
        ports: started,
        receptions,
        rdma: None,
    })
}
