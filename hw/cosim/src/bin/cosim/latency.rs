//! From the start of a frame at XGMII, or at the blocks of the PCS, to the last byte of its payload in memory,
//! by size.

use pollux_cosim::CosimDevice;
use pollux_cosim::pcie::Behaviour;
use pollux_cosim::rig::{Form, Rig, datagram};
use pollux_cosim::verilated::{VerilatedCard, Wires};
use serde_json::{Value, json};

/// Bytes of payload.
const SIZES: [usize; 10] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192];
/// Frames of each size, so that the clocks have many phases.
const FRAMES: usize = 16;
/// Longer than from a frame's end to memory, in picoseconds.
const MEMORY_PS: u64 = 4_000_000;
/// Period after which both clocks have the same phase again.
const CLOCKS_PS: u64 = 32_000;

/// A row for each size, without and with the PCS.
pub(crate) fn measure() -> anyhow::Result<Value> {
    let pcs = Wires::Pcs {
        ppm: [100, -100, 0, 0],
        direct: true,
    };
    Ok(json!({
        "latency": rows(Wires::Xgmii)?,
        "latency_pcs": rows(pcs)?,
        "pcie_ns": Behaviour::WRITE_PS as f64 / 1000.0,
    }))
}

/// A row for each size, in nanoseconds: the shortest and the longest latency.
fn rows(wires: Wires) -> anyhow::Result<Vec<Value>> {
    let card = VerilatedCard::wired(3, Behaviour::prompt(), wires);
    let mut rig = Rig::new(CosimDevice::new(card))?;
    rig.add_list(0, 64 << 10, 1_000_000_000);
    rig.add_stream(0, 0, 5000, Form::Payload);
    rig.enable(0);
    rig.advance(5_000_000);
    let mut rows = Vec::new();
    for size in SIZES {
        // The frame itself, from its start to its FCS: no byte can be in memory sooner.
        let wire = (8 + (42 + size).max(60) + 4) as u64 * 800;
        let rest = (wire + MEMORY_PS).next_multiple_of(CLOCKS_PS);
        let mut taken = Vec::new();
        for number in 0..FRAMES {
            rig.put(0, datagram(0, 4000, 5000, &vec![0x5a; size]));
            rig.advance(rest + 1_700 * number as u64);
            let ps = rig
                .device
                .with(|card, _| card.traffic().last_write - card.last_start(0));
            taken.push(ps as f64 / 1000.0);
            rig.receive();
        }
        let least = taken.iter().copied().fold(f64::INFINITY, f64::min);
        let most = taken.iter().copied().fold(0.0, f64::max);
        let wire = wire as f64 / 1000.0;
        rows.push(json!({ "payload": size, "wire_ns": wire, "least_ns": least, "most_ns": most }));
    }
    rig.flush();
    let broken = rig.device.with(|card, _| card.violations());
    anyhow::ensure!(
        broken.is_empty() && rig.wrong == 0,
        "the card breaks rules: {broken:?}"
    );
    Ok(rows)
}
