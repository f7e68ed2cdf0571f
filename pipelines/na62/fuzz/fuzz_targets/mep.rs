//! Arbitrary bytes as a multi-event packet, and each of its fragments as TDC data. Fragments lie in
//! the packet one after another; both formats, written back, read the same; all instruction sets
//! decode the same edges.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_na62::formats::mep::{Fragment, MepPacket, MepWriter};
use pollux_na62::formats::tel62::{Decoded, Edge, Tel62, write_tel62};
use pollux_pipelines::simd::Simd;

fn tdc_data(fragment: &Fragment) {
    let parsed = Tel62::parse(fragment.payload);
    let parsed = parsed.map(|data| data.edges(fragment.timestamp).collect::<Vec<_>>());
    for simd in Simd::all() {
        let mut decoded = Decoded::new(simd);
        let data = Tel62::decode(fragment.payload, fragment.timestamp, &mut decoded);
        assert_eq!(data.map(|_| decoded.edges().collect()), parsed, "{simd:?}");
    }
    let Ok(data) = Tel62::parse(fragment.payload) else {
        return;
    };
    let edges: Vec<Edge> = data.edges(fragment.timestamp).collect();
    assert!(edges.len() * 4 <= fragment.payload.len());
    for edge in &edges {
        assert!(edge.tdc < 4 && edge.channel < 32 && edge.time >> 40 == 0);
    }
    let mut bytes = vec![0; 8 * fragment.payload.len() + 64];
    let (board, kind) = (data.sub_id(), data.trigger_type());
    // Edges out of order, far from their event, or of an invalid FPGA are read but never written.
    if let Ok(len) = write_tel62(&mut bytes, board, kind, fragment.timestamp, &edges) {
        let again = Tel62::parse(&bytes[..len]).expect("our own data");
        assert!(again.is_special() || again.edges(fragment.timestamp).eq(edges));
        assert_eq!((again.sub_id(), again.trigger_type()), (board, kind));
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(packet) = MepPacket::parse(data) else {
        return;
    };
    let limit = data.as_ptr_range();
    let mut end = limit.start;
    let mut writer = MepWriter::new(
        vec![0; data.len()],
        packet.source_id(),
        packet.sub_id(),
        packet.first_event(),
    )
    .expect("room");
    let mut read = 0;
    for fragment in packet.fragments() {
        let range = fragment.payload.as_ptr_range();
        assert!(range.start >= end && range.end <= limit.end);
        end = range.end;
        let (event, before) = (fragment.event, packet.first_event() + read);
        assert_eq!(event, before & 0xff_ffff);
        tdc_data(&fragment);
        writer
            .push(fragment.timestamp, fragment.last_of_burst, fragment.payload)
            .expect("no longer than it was");
        read += 1;
    }
    assert_eq!(read, u32::from(packet.event_count()));
    let (bytes, len) = writer.finish();
    assert_eq!(len, data.len());
    let again = MepPacket::parse(&bytes).expect("our own packet");
    assert!(again.fragments().eq(packet.fragments()));
});
