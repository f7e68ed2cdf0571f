//! The ports of a run.

use pollux_pmd::port::{Configured, Port, Started};
use pollux_pmd::{Ledger, PortError, RxQueue, StartedPort, TxQueue};
use pollux_program::ports::PortView;

/// Ports that were started together, and their queues, before these go to the loops.
#[derive(Default)]
pub(crate) struct Rig {
    pub(crate) ports: Vec<Port<Started>>,
    pub(crate) views: Vec<PortView>,
    /// Of each port.
    pub(crate) rx: Vec<Vec<RxQueue>>,
    pub(crate) tx: Vec<Vec<TxQueue>>,
}

impl Rig {
    /// Starts ports that have all been configured, so that one which is wrong leaves no trace of
    /// the others. The counters of what they receive go into the ledger.
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
