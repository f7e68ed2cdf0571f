//! Arbitrary bytes as a packet of primitives: it has the announced number, and reads the same when
//! written back; all instruction sets decode the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pollux_na62::formats::mtp::{Decoded, MAX_PACKET, MtpPacket, MtpWriter, Primitive};
use pollux_pipelines::simd::Simd;

fuzz_target!(|data: &[u8]| {
    let parsed = MtpPacket::parse(data).map(|packet| packet.primitives().collect::<Vec<_>>());
    for simd in Simd::all() {
        let mut decoded = Decoded::new(simd);
        let read = MtpPacket::decode(data, &mut decoded).map(|_| decoded.primitives().collect());
        assert_eq!(read, parsed, "{simd:?}");
    }
    let Ok(packet) = MtpPacket::parse(data) else {
        return;
    };
    let read: Vec<Primitive> = packet.primitives().collect();
    assert_eq!(read.len(), usize::from(packet.count()));
    assert!(read.iter().all(|primitive| primitive.id >> 8 != 0));
    if data.len() > MAX_PACKET {
        return;
    }
    let mut writer =
        MtpWriter::new([0; MAX_PACKET], packet.source_id(), packet.sub_id()).expect("room");
    for primitive in &read {
        writer.push(*primitive).expect("no longer than it was");
    }
    let (bytes, len) = writer.finish();
    assert!(len <= data.len());
    let again = MtpPacket::parse(&bytes[..len]).expect("our own packet");
    assert!(again.primitives().eq(read));
    assert_eq!(
        (again.source_id(), again.sub_id()),
        (packet.source_id(), packet.sub_id())
    );
});
