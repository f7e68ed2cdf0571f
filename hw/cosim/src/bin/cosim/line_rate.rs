//! Four ports at line rate, while buffers are returned as fast as they are announced.

use pollux_card_model::SimulatedCard;
use pollux_card_model::registers::port;
use pollux_cosim::CosimDevice;
use pollux_cosim::pcie::{
    Behaviour, LINK_BYTES_PER_US, POSTED_BYTES, POSTED_HEADERS, TLP_OVERHEAD,
};
use pollux_cosim::rig::{CATCH_ALL, Form, Rig, datagram};
use pollux_cosim::verilated::VerilatedCard;
use serde_json::{Value, json};

/// Time of each run, in picoseconds, at the wire.
const WIRE_PS: u64 = 120_000_000;
/// Preamble, FCS and gap.
const AROUND: u64 = 8 + 4 + 12;

/// Minimum frames as payloads and as whole frames, and payloads of 1 KB.
pub(crate) fn measure() -> anyhow::Result<Value> {
    let runs = [
        (18, Form::Payload),
        (18, Form::Frame),
        (1024, Form::Payload),
    ];
    let rows = runs.map(|(payload, form)| run(payload, form));
    let rows: Vec<_> = rows.into_iter().collect::<Result<_, _>>()?;
    Ok(json!({
        "line_rate": rows,
        "pcie": {
            "link_bytes_per_us": LINK_BYTES_PER_US,
            "tlp_overhead": TLP_OVERHEAD,
            "posted_headers": POSTED_HEADERS,
            "posted_bytes": POSTED_BYTES,
            "write_ps": Behaviour::WRITE_PS,
        },
    }))
}

fn run(payload: usize, form: Form) -> anyhow::Result<Value> {
    let mut rig = Rig::new(CosimDevice::new(VerilatedCard::new(2, Behaviour::prompt())))?;
    let ports = rig.ports();
    for which in 0..ports {
        let list = which as u16 * 32 + if form == Form::Frame { CATCH_ALL } else { 0 };
        rig.add_list(list, 16 << 10, 1_000_000);
        if form == Form::Frame {
            rig.write(&port::THIS, which, port::NET_CTRL, 0, 0x37);
        } else {
            rig.add_stream(which, 0, 5000, form);
        }
        rig.enable(which);
    }
    rig.advance(5_000_000);
    let bytes = vec![0x5a; payload];
    let frame = datagram(0, 4000, 5000, &bytes).bytes.len() as u64;
    let count = WIRE_PS / ((frame + AROUND) * 800);
    for which in 0..ports {
        for _ in 0..count {
            rig.put(which, datagram(which, 4000, 5000, &bytes));
        }
    }
    let start = rig.device.with(|card, _| card.traffic());
    let mut received = 0;
    while rig
        .device
        .with(|card, _| (0..ports).any(|which| card.coming(which) > 0))
    {
        rig.advance(4_000_000);
        received += rig.receive().len() as u64;
    }
    let busy = rig.device.with(|card, _| card.traffic());
    rig.advance(10_000_000);
    received += rig.flush().len() as u64;
    let counter = |register| {
        (0..ports)
            .map(|which| rig.read64(&port::THIS, which, register, 0))
            .sum::<u64>()
    };
    let broken = rig.device.with(|card, _| card.violations());
    anyhow::ensure!(
        broken.is_empty() && rig.wrong == 0,
        "the card breaks rules: {broken:?}"
    );
    anyhow::ensure!(
        counter(port::RX_FRAMES) == count * ports as u64,
        "frames are missing"
    );
    Ok(json!({
        "frame": frame + 4,
        "payload": payload,
        "whole_frames": form == Form::Frame,
        "ports": ports,
        "offered": count * ports as u64,
        "received": received,
        "dropped": counter(port::DROP_OVERFLOW),
        "write_bytes": busy.write_bytes - start.write_bytes,
        "write_waits": busy.write_waits - start.write_waits,
    }))
}
