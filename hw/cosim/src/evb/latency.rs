//! Latencies of the ring in cycles, with nothing else to do (hw/docs/cycles.md).

use pollux_farm::message::Feedback;
use pollux_farm::scheduler::Discipline;
use pollux_farm::topology::Descriptor;

use super::model::FEEDERS;
use super::ring::Ring;
use super::setting::Setting;

/// Cycles in which all that has begun ends.
const REST: u32 = 200;

/// Latencies in cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// From the trigger to its message.
    pub sched_decide: u64,
    /// From the message to the next receive buffer.
    pub sched_next: u64,
    /// In a feeder with its link, beside the transfer.
    pub flow_node: u64,
}

/// Measures them with one event.
///
/// # Errors
/// A ring that does not answer, or that does not do what it has to.
pub fn latencies() -> anyhow::Result<Latencies> {
    let setting = Setting {
        run: 1,
        columns: 4,
        column_of: (0..4).collect(),
        buffers: 2,
        feeders: FEEDERS,
        wait: false,
        discipline: Discipline::Turns,
        partition_of: Vec::new(),
        loops: 0,
        pending: 16,
        timeout: 1_000_000,
        slot: 512,
        bypass_above: 4096,
        source: 2,
        period: 1000,
        latency: 1,
        lost: 0,
        damaged: 0,
        large: 0,
        commands: 0,
        lies: 0,
        late: 0,
    };
    let mut ring = Ring::new(&setting, 1)?;
    for descriptor in 0..setting.descriptors() {
        ring.send(Feedback {
            run: setting.run,
            column: setting.column_of[setting.node(descriptor)],
            descriptor: Descriptor(descriptor as u16),
            generation: 0,
            mep: 0,
        });
        ring.step();
    }
    ring.inputs.store_bytes = [128; FEEDERS];
    ring.inputs.store_valid = u8::MAX;
    for _ in 0..REST {
        ring.step();
    }

    let mut found = Latencies::default();
    ring.inputs.trigger = 1;
    ring.step();
    let triggered = ring.cycles;
    let mut begun = Vec::new();
    let (mut sent, mut next) = (None, None);
    for _ in 0..REST {
        let seen = ring.step();
        let cycle = ring.cycles;
        if seen.sent.is_some() {
            sent.get_or_insert(cycle);
        }
        if sent.is_some() && ring.is_ready() {
            next.get_or_insert(cycle);
        }
        for (feeder, _) in seen.begun {
            begun.push(cycle);
            // The transfer takes no time: it ends with the next cycle.
            ring.inputs.done |= 1 << feeder;
        }
    }
    let (Some(sent), Some(next), true) = (sent, next, begun.len() == FEEDERS) else {
        anyhow::bail!("an event was not built: {begun:?}");
    };
    if let Some(what) = ring.mismatch {
        anyhow::bail!("{what}");
    }
    found.sched_decide = sent - triggered;
    found.sched_next = next - sent;
    // From transfer to transfer, less the cycle in which it runs.
    found.flow_node = begun[1] - begun[0] - 1;
    Ok(found)
}
