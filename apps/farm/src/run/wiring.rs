//! Ports of a run, and what each loop has of them.
//!
//! Without a switch there is a queue from each loop to each. With one, each member has a line of
//! its own to the switch and back, so that each has an output there.

use anyhow::Result;
use pollux_app::ports::{self, PortView};
use pollux_farm::role::Address;
use pollux_mempool::Mempool;
use pollux_pmd::port::{Port, Started};
use pollux_pmd::{Ledger, PortConfig, RxQueue, StartedPort, TxQueue};
use pollux_switch::SwitchPort;

use super::plan::Plan;

/// The port of a run in one process.
const LOOPBACK: &str = "loopback";

/// Most queues of that port.
const QUEUES: usize = 64;

/// Queues of a loop.
#[derive(Default)]
pub struct Lines {
    pub rx: Vec<RxQueue>,
    pub tx: Vec<TxQueue>,
    /// The member of each queue, where there is a switch.
    pub owners: Vec<Address>,
}

/// Ports of a run.
pub struct Wiring {
    pub ports: Vec<Port<Started>>,
    pub views: Vec<PortView>,
    pub loops: Vec<Lines>,
    /// The lines of the switch.
    pub switch: Option<Vec<SwitchPort>>,
}

impl Wiring {
    /// Opens the ports, and deals their queues. The ledger counts what the queues receive.
    ///
    /// # Errors
    /// Ports that cannot be opened.
    pub fn open(plan: &Plan, pool: &Mempool, ledger: &mut Ledger) -> Result<Self> {
        let loops = plan.shares.len();
        let members: Vec<Address> = plan.members().collect();
        let queues = match plan.switch {
            None => loops * loops,
            Some(_) => 2 * members.len(),
        };
        let mut wiring = Self {
            ports: Vec::new(),
            views: Vec::new(),
            loops: (0..loops).map(|_| Lines::default()).collect(),
            switch: None,
        };
        let (mut all_rx, mut all_tx) = (Vec::new(), Vec::new());
        let registry = ports::registry();
        for first in (0..queues).step_by(QUEUES) {
            let here = QUEUES.min(queues - first) as u16;
            let config = PortConfig::new(pool.clone())
                .rx_queues(here)
                .tx_queues(here)
                .ring(plan.ring());
            let started = registry.open(LOOPBACK)?.configure(config)?.start()?;
            wiring.views.push(PortView::new(&started));
            let StartedPort { port, rx, tx } = started;
            wiring.ports.push(port);
            all_rx.extend(rx);
            all_tx.extend(tx);
        }
        for (number, queue) in all_rx.iter().enumerate() {
            ledger.add(format!("queue {number}"), queue.tally());
        }
        if plan.switch.is_some() {
            wiring.deal_lines(plan, &members, all_rx, all_tx);
        } else {
            // Queue `from * loops + to` leads from one loop to another.
            for (number, queue) in all_rx.into_iter().enumerate() {
                wiring.loops[number % loops].rx.push(queue);
            }
            for (number, queue) in all_tx.into_iter().enumerate() {
                wiring.loops[number / loops].tx.push(queue);
            }
        }
        Ok(wiring)
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
