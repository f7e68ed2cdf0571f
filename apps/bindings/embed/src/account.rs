//! The ledger of a port: a view for any thread, and readings of it.

use std::collections::BTreeMap;

use pollux_pmd::Ledger;
use pollux_pmd::ledger::SentView;
use serde::Serialize;

/// A reading of the ledger. Frames from the wire are delivered or dropped for a cause; only datagrams
/// under reassembly are neither.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Frames that reached the port.
    pub from_wire: u64,
    /// Frames of datagrams that the program has received.
    pub delivered: u64,
    /// Lost frames by the name of their cause; causes without a frame are left out.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Whether `from_wire` is the sum of the others. It is when the port is closed.
    pub balanced: bool,
    /// What the port has sent.
    pub sent: SentAccount,
}

/// What a port has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SentAccount {
    /// Frames.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that the port had accepted, and its device then refused.
    pub errors: u64,
}

/// The ledger of a port, readable from any thread, also after the port was closed.
#[derive(Clone)]
pub struct LedgerView {
    pub(crate) received: Ledger,
    pub(crate) sent: Option<SentView>,
}

impl LedgerView {
    /// Reads the ledger.
    #[must_use]
    pub fn account(&self) -> Account {
        let sum = self.received.balance();
        Account {
            from_wire: sum.from_wire,
            delivered: sum.delivered,
            dropped: sum.drops().map(|(cause, n)| (cause.name(), n)).collect(),
            balanced: sum.is_balanced(),
            sent: self
                .sent
                .as_ref()
                .map_or_else(SentAccount::default, |sent| SentAccount {
                    packets: sent.packets(),
                    bytes: sent.bytes(),
                    errors: sent.errors(),
                }),
        }
    }
}
