//! Started ports of a run, with their queues.

use pollux_app::ports::PortView;
use pollux_pmd::port::{Configured, Port, Started};
use pollux_pmd::{Ledger, PortError, RxQueue, StartedPort, TxQueue};

/// Ports that were started together, and their queues, before these move to the loops.
#[derive(Default)]
pub(crate) struct Rig {
    pub(crate) ports: Vec<Port<Started>>,
    pub(crate) views: Vec<PortView>,
    /// Queues of each port.
    pub(crate) rx: Vec<Vec<RxQueue>>,
    pub(crate) tx: Vec<Vec<TxQueue>>,
}

impl Rig {
    /// Starts ports that have all been configured, so that a configuration error in one leaves the
    /// others untouched. The tallies of their receive queues are added to the ledger.
    pub(crate) fn start(
        configured: Vec<Port<Configured>>,
        ledger: &mut Ledger,
    ) -> Result<Self, PortError> {
        let mut rig = Self::default();
        for port in configured {
            let started = port.start()?;
            rig.views.push(PortView::new(&started));
            let StartedPort { port, rx, tx } = started;
            for queue in &rx {
                let name = format!("{} queue {}", port.spec(), queue.queue());
                ledger.add(name, queue.tally());
            }
            rig.ports.push(port);
            rig.rx.push(rx);
            rig.tx.push(tx);
        }
        Ok(rig)
    }
}
