//! Ports of a process, and what each of its loops has of them.
//!
//! In one process, there is a queue from each loop to each. With a switch in it, each member has a
//! line of its own to the switch and back, so that each has an output there. Of several processes,
//! each has a port, whose other end is at the switch in another process.

use anyhow::{Context as _, Result};
use pollux_app::ports::{self, PortView};
use pollux_farm::role::Address;
use pollux_mempool::Mempool;
use pollux_pmd::port::{Port, Started};
use pollux_pmd::{Ledger, PortConfig, Probed, Registry, RxQueue, StartedPort, TxQueue};
use pollux_switch::SwitchPort;

use super::layout::Layout;
use super::plan::Plan;

/// The port of a run in one process, and of a loop to itself.
const LOOPBACK: &str = "loopback";

/// Most queues of that port.
const QUEUES: usize = 64;

/// Of several processes: the transmit queue that leads back to the loop. The first one leads to the
/// switch.
pub const BACK: u16 = 1;

/// Queues of a loop.
#[derive(Default)]
pub struct Lines {
    pub rx: Vec<RxQueue>,
    pub tx: Vec<TxQueue>,
    /// The member of each queue, where there is a switch in the process.
    pub owners: Vec<Address>,
    /// Most bytes of a frame.
    pub max_frame: usize,
}

/// Ports of a process.
#[derive(Default)]
pub struct Wiring {
    pub ports: Vec<Port<Started>>,
    pub views: Vec<PortView>,
    pub loops: Vec<Lines>,
    /// The lines of the switch.
    pub switch: Option<Vec<SwitchPort>>,
}

/// Queues of a port.
type Queues = (Vec<RxQueue>, Vec<TxQueue>);

impl Wiring {
    /// Opens the ports, and deals their queues. `specs` are those of the ports to other processes.
    /// The ledger counts what the queues receive.
    ///
    /// # Errors
    /// Ports that cannot be opened.
    pub fn open(
        plan: &Plan,
        specs: &[String],
        pool: &Mempool,
        ledger: &mut Ledger,
    ) -> Result<Self> {
        let mut wiring = Self::default();
        let registry = ports::registry();
        match plan.layout {
            Layout::Loops => wiring.within(plan, &registry, pool, ledger)?,
            Layout::Processes(_) | Layout::Switch => {
                wiring.between(plan, &registry, specs, pool, ledger)?;
            }
            Layout::Part(_) => {
                let mut lines = Lines {
                    max_frame: plan.max_frame(),
                    ..Lines::default()
                };
                for spec in specs.iter().map(String::as_str).chain([LOOPBACK]) {
                    let config = PortConfig::new(pool.clone()).ring(plan.ring());
                    let port = registry.open(spec)?;
                    let max_frame = port.capabilities().max_frame;
                    plan.expect_frames_of(max_frame, spec)?;
                    lines.max_frame = lines.max_frame.min(max_frame);
                    let (rx, tx) = wiring.start(port, config, ledger)?;
                    lines.rx.extend(rx);
                    lines.tx.extend(tx);
                }
                wiring.loops.push(lines);
            }
        }
        Ok(wiring)
    }

    /// Starts a port.
    fn start(
        &mut self,
        port: Port<Probed>,
        config: PortConfig,
        ledger: &mut Ledger,
    ) -> Result<Queues> {
        let started = port.configure(config)?.start()?;
        self.views.push(PortView::new(&started));
        let StartedPort { port, rx, tx } = started;
        let place = self.ports.len();
        for (number, queue) in rx.iter().enumerate() {
            ledger.add(format!("port {place} queue {number}"), queue.tally());
        }
        self.ports.push(port);
        Ok((rx, tx))
    }

    /// Ports of the switch to other processes.
    fn between(
        &mut self,
        plan: &Plan,
        registry: &Registry,
        specs: &[String],
        pool: &Mempool,
        ledger: &mut Ledger,
    ) -> Result<()> {
        let mut lines = Vec::new();
        for (spec, share) in specs.iter().zip(&plan.shares) {
            let config = PortConfig::new(pool.clone()).ring(plan.ring());
            let port = registry.open(spec).context("the switch")?;
            plan.expect_frames_of(port.capabilities().max_frame, spec)?;
            let (rx, mut tx) = self.start(port, config, ledger).context("the switch")?;
            lines.push(SwitchPort {
                name: share.to_string(),
                rx,
                tx: tx.pop(),
            });
        }
        self.switch = Some(lines);
        Ok(())
    }

    /// Queues between the loops of this process.
    fn within(
        &mut self,
        plan: &Plan,
        registry: &Registry,
        pool: &Mempool,
        ledger: &mut Ledger,
    ) -> Result<()> {
        let loops = plan.shares.len();
        let members: Vec<Address> = plan.members().collect();
        let queues = match plan.switch {
            None => loops * loops,
            Some(_) => 2 * members.len(),
        };
        let lines = || Lines {
            max_frame: plan.max_frame(),
            ..Lines::default()
        };
        self.loops = (0..loops).map(|_| lines()).collect();
        let (mut all_rx, mut all_tx) = (Vec::new(), Vec::new());
        for first in (0..queues).step_by(QUEUES) {
            let here = QUEUES.min(queues - first) as u16;
            let config = PortConfig::new(pool.clone())
                .rx_queues(here)
                .tx_queues(here)
                .ring(plan.ring());
            let (rx, tx) = self.start(registry.open(LOOPBACK)?, config, ledger)?;
            all_rx.extend(rx);
            all_tx.extend(tx);
        }
        if plan.switch.is_some() {
            self.deal_lines(plan, &members, all_rx, all_tx);
            return Ok(());
        }
        // Queue `from * loops + to` leads from one loop to another.
        for (number, queue) in all_rx.into_iter().enumerate() {
            self.loops[number % loops].rx.push(queue);
        }
        for (number, queue) in all_tx.into_iter().enumerate() {
            self.loops[number / loops].tx.push(queue);
        }
        Ok(())
    }

    /// Each member has a queue to the switch, and behind all of these one from it.
    fn deal_lines(
        &mut self,
        plan: &Plan,
        members: &[Address],
        mut up_rx: Vec<RxQueue>,
        mut up_tx: Vec<TxQueue>,
    ) {
        let down_rx = up_rx.split_off(members.len());
        let down_tx = up_tx.split_off(members.len());
        let lines = up_rx.into_iter().zip(down_tx);
        let port = |(member, (rx, tx)): (&Address, (RxQueue, TxQueue))| SwitchPort {
            name: format!("{member:?}").to_lowercase(),
            rx: vec![rx],
            tx: Some(tx),
        };
        self.switch = Some(members.iter().zip(lines).map(port).collect());
        for (&member, (rx, tx)) in members.iter().zip(down_rx.into_iter().zip(up_tx)) {
            let lines = &mut self.loops[plan.loop_of(member)];
            lines.owners.push(member);
            lines.rx.push(rx);
            lines.tx.push(tx);
        }
    }
}
