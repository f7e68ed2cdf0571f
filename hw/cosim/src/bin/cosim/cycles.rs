//! Latencies of stages, in cycles of their clock: from the edge that accepts the first word to the
//! edge at which a reader could accept the result, with empty pipelines (hw/docs/cycles.md).

use pollux_card_model::registers::{port, tx};
use pollux_cosim::CosimDevice;
use pollux_cosim::evb;
use pollux_cosim::pcie::Behaviour;
use pollux_cosim::rig::{Form, Rig, datagram, neighbour};
use pollux_cosim::verilated::{Probe, VerilatedCard, Watch, Wires};
use serde_json::{Value, json};

/// Measures all of them; `null` for functions that the card lacks.
pub(crate) fn measure() -> anyhow::Result<Value> {
    let received = receive()?;
    let sent = send(Wires::Xgmii)?;
    let by_pcs = send(Wires::Cable)?;
    let of = |watch: &Watch, from, to| watch.cycles((0, from), (0, to));
    // To the frame's eighth byte, which is in the word after the start.
    let mac_rx = of(&received, Probe::RxStart, Probe::RxWord).map(|cycles| cycles - 1);
    let mac_tx = of(&sent, Probe::TxWord, Probe::TxStart).map(|cycles| cycles + 1);
    let ring = evb::latencies()?;
    Ok(json!({
        "sched_decide": ring.sched_decide,
        "sched_next": ring.sched_next,
        "flow_node": ring.flow_node,
        "udp_tx_to_rx": sent.cycles((0, Probe::Sent), (1, Probe::Payload)),
        "udp_tx_to_rx_pcs": by_pcs.cycles((0, Probe::Sent), (1, Probe::Payload)),
        "mac_rx": mac_rx,
        "mac_tx": mac_tx,
        "udp_parse": of(&received, Probe::RxWord, Probe::Payload),
        "udp_tx": of(&sent, Probe::Sent, Probe::TxOffer),
        "decompress": of(&received, Probe::Fetched, Probe::Expanded),
        "tlb_hit": of(&received, Probe::Lookup, Probe::Bus),
        "xlate_hit": of(&received, Probe::Lookup, Probe::Bus),
        "clop_select": of(&received, Probe::Select, Probe::Place),
        "desc_to_write": received.cycles_to_write((0, Probe::Desc)),
    }))
}

fn rig(wires: Wires) -> anyhow::Result<Rig<VerilatedCard>> {
    let card = VerilatedCard::wired(1, Behaviour::prompt(), wires);
    let mut rig = Rig::new(CosimDevice::new(card))?;
    for which in 0..2 {
        rig.add_list(which as u16 * 32, 4096, 100_000);
        rig.add_stream(which, 0, 5000, Form::Payload);
        rig.enable(which);
    }
    rig.advance(5_000_000);
    Ok(rig)
}

/// A payload of 64 bytes arrives.
fn receive() -> anyhow::Result<Watch> {
    let mut rig = rig(Wires::Xgmii)?;
    rig.device.with(|card, _| card.watch());
    rig.put(0, datagram(0, 4000, 5000, &[0x5a; 64]));
    rig.advance(3_000_000);
    let watch = rig.device.with(|card, _| card.watched());
    anyhow::ensure!(rig.flush().len() == 1, "the payload was lost");
    Ok(watch)
}

/// A payload of 64 bytes is sent by port 0 to port 1, whose address is resolved by then: looped behind the MACs,
/// or by the PCS of both.
fn send(wires: Wires) -> anyhow::Result<Watch> {
    let mut rig = rig(wires)?;
    if wires == Wires::Xgmii {
        for which in 0..2 {
            rig.write(&port::THIS, which, port::MAC_CTRL, 0, 0b111);
        }
    }
    // From UDP port 4000 to 5000.
    let to = u32::from(*neighbour(1, 5000).socket.ip());
    rig.write(&port::THIS, 0, port::DESTINATION_IP, 0, to);
    rig.write(
        &port::THIS,
        0,
        port::DESTINATION_PORTS,
        0,
        u32::from_be_bytes([0x0f, 0xa0, 0x13, 0x88]),
    );
    // The first one asks for the address.
    rig.send(0, &[0x5a; 64]);
    rig.advance(20_000_000);
    anyhow::ensure!(rig.flush().len() == 1, "the first payload was lost");
    rig.device.with(|card, _| card.watch());
    rig.send(0, &[0x5a; 64]);
    rig.advance(10_000_000);
    anyhow::ensure!(
        rig.read(&tx::THIS, 0, tx::RING_STATUS, 0) & 0b10 == 0,
        "the ring has stopped"
    );
    Ok(rig.device.with(|card, _| card.watched()))
}
