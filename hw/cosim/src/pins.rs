//! Pins of the card as C sees them (`shim/card.h`).

/// Ports of the card.
pub(crate) const PORTS: usize = 4;

/// One cycle of a stream of the host bus, without `ready`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Beat {
    /// With `sop`.
    pub(crate) header: [u32; 4],
    /// The first DW of the TLP comes first.
    pub(crate) data: [u32; 8],
    pub(crate) valid: u8,
    pub(crate) sop: u8,
    pub(crate) eop: u8,
    unused: u8,
}

impl Beat {
    /// A beat of a TLP.
    pub(crate) fn new(header: [u32; 4], data: [u32; 8], sop: bool, eop: bool) -> Self {
        let (sop, eop) = (sop.into(), eop.into());
        Self {
            header,
            data,
            valid: 1,
            sop,
            eop,
            unused: 0,
        }
    }
}

/// Into the card, on `clk_core`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct CoreIn {
    pub(crate) rx_cpl: Beat,
    pub(crate) rx_req: Beat,
    pub(crate) wr_req_ready: u8,
    pub(crate) rd_req_ready: u8,
    pub(crate) tx_cpl_ready: u8,
    pub(crate) max_payload: u8,
    pub(crate) max_read: u8,
    pub(crate) bus_master: u8,
    pub(crate) msix_enable: u8,
    pub(crate) msix_mask: u8,
    pub(crate) reset: u8,
    /// Function level resets, a bit for each function, as the four before this.
    pub(crate) flr: u8,
    unused: [u8; 2],
}

/// Out of the card, on `clk_core`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct CoreOut {
    pub(crate) wr_req: Beat,
    pub(crate) rd_req: Beat,
    pub(crate) tx_cpl: Beat,
    pub(crate) rx_cpl_ready: u8,
    pub(crate) rx_req_ready: u8,
    pub(crate) flr_done: u8,
    pub(crate) unused: u8,
}

/// Into the card, on `clk_net`; the timing inputs belong to no clock.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct NetIn {
    pub(crate) data: [u64; PORTS],
    pub(crate) control: [u8; PORTS],
    pub(crate) ttc_clock: u8,
    pub(crate) ttc_start: u8,
    pub(crate) ttc_end: u8,
    pub(crate) ttc_trigger: u8,
    pub(crate) reset: u8,
    unused: [u8; 3],
    /// State and counts of each port's PCS (`pcs_pkg`); 0 without one.
    pub(crate) pcs_inc: [u32; PORTS],
    pub(crate) pcs_status: [u8; PORTS],
}

/// Out of the card, on `clk_net`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct NetOut {
    pub(crate) data: [u64; PORTS],
    pub(crate) control: [u8; PORTS],
    /// The test pattern, a bit for each port's PCS: to send, to receive.
    pub(crate) prbs31_tx: u8,
    pub(crate) prbs31_rx: u8,
    unused: [u8; 2],
}

// The structures have no padding, so that C sees the same.
const _: () = {
    assert!(size_of::<Beat>() == 52 && align_of::<Beat>() == 4);
    assert!(size_of::<CoreIn>() == 2 * 52 + 12);
    assert!(size_of::<CoreOut>() == 3 * 52 + 4);
    assert!(size_of::<NetIn>() == 14 * PORTS + 8);
    assert!(size_of::<NetOut>() == 9 * PORTS + 4);
};
