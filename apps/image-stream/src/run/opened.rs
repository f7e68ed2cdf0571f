//! A port that is open, with its queues.

use pollux_pmd::port::{Port, Started};
use pollux_pmd::{Capabilities, RxQueue, TxQueue};

/// A started port before its queues are given out.
pub struct Opened {
    pub port: Port<Started>,
    pub offered: Capabilities,
    pub rx: Vec<RxQueue>,
    pub tx: Vec<TxQueue>,
}
