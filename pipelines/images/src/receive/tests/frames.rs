//! Packets in frames of a port, of one segment or several, copied and converted.

use pollux_mempool::region::PageSize;
use pollux_mempool::{Mbuf, Mempool, PoolConfig};
use pollux_pipelines::Moment;
use pollux_pmd::endpoint::StreamFrame;
use pollux_pmd::stream::StreamId;

use super::super::*;
use super::support::*;
use crate::Pixel;

/// Bytes before the payload: headers of Ethernet, IPv4 and UDP.
const OFFSET: usize = 42;

/// A pool whose buffers hold so many bytes.
fn pool(data_room: u16) -> Mempool {
    Mempool::new(PoolConfig {
        buffers: 1024,
        data_room: data_room.into(),
        pages: PageSize::Kib4,
        ..PoolConfig::default()
    })
    .unwrap()
}

/// A frame with a payload, in as many segments as it takes. `offset` bytes are before the payload.
fn frame(
    pool: &Mempool,
    room: usize,
    stream: StreamId,
    offset: usize,
    payload: &[u8],
) -> StreamFrame {
    let bytes = [&vec![0xEE; offset][..], payload].concat();
    let mut segments = bytes.chunks(room).map(|bytes| {
        let mut mbuf = pool.alloc().unwrap();
        mbuf.append(bytes.len()).unwrap().copy_from_slice(bytes);
        mbuf
    });
    let mut mbuf: Mbuf = segments.next().unwrap();
    segments.for_each(|segment| mbuf.chain(segment).unwrap());
    StreamFrame {
        mbuf,
        stream,
        offset: offset as u16,
        len: payload.len() as u16,
    }
}

#[test]
fn frames_of_one_segment_and_of_many_are_placed() {
    let geometry = geometries()[0];
    for room in [9000_u16, 2048, 100, 64] {
        let pool = pool(room);
        let (mut placer, mut reader) =
            images::<u16>(&geometry.config(DiscardPolicy::Empty)).unwrap();
        let size = Err(placer.causes().packet.size);
        let keys = geometry.keys(3);
        for &key in &keys {
            let payload = geometry.payload(key);
            let whole = frame(&pool, room.into(), geometry.stream(key), OFFSET, &payload);
            // Frames that are longer or shorter than a packet, or than they say.
            let longer = [&payload[..], &[1; 8]].concat();
            for payload in [&longer[..], &payload[..8239], &payload[..20], &[]] {
                let wrong = frame(&pool, room.into(), geometry.stream(key), OFFSET, payload);
                assert_eq!(placer.receive(&wrong, Moment(0)), size);
            }
            let mut cut = frame(
                &pool,
                room.into(),
                geometry.stream(key),
                OFFSET,
                &payload[..8000],
            );
            cut.len = 8240;
            assert_eq!(placer.receive(&cut, Moment(0)), size);
            assert_eq!(placer.receive(&whole, Moment(0)), Ok(()));
        }
        check(&geometry, &poll(&mut reader, 0)[0], &keys);
    }
}

/// A conversion that anyone can check: a number, less its place in the module.
fn convert(raw: u16, place: usize) -> f32 {
    f32::from(raw) - place as f32
}

#[test]
fn packets_are_converted_on_the_way() {
    let geometry = geometries()[0];
    // Segments, and payloads that begin at odd addresses.
    for (room, offset) in [
        (9000_u16, OFFSET),
        (9000, OFFSET + 1),
        (2048, OFFSET),
        (100, OFFSET + 1),
    ] {
        let pool = pool(room);
        let (mut placer, mut reader) =
            images::<f32>(&geometry.config(DiscardPolicy::Empty)).unwrap();
        let size = Err(placer.causes().packet.size);
        let mut keys = geometry.keys(3);
        let lost = keys.remove(70);
        for &key in keys.iter().rev() {
            let stream = geometry.stream(key);
            let payload = geometry.payload(key);
            let whole = frame(&pool, room.into(), stream, offset, &payload);
            let longer = [&payload[..], &[1; 8]].concat();
            for payload in [&longer[..], &payload[..8239], &payload[..20], &[]] {
                let wrong = frame(&pool, room.into(), stream, offset, payload);
                let placed = placer.receive_with(&wrong, Moment(0), |_, _: &[u16], _| {});
                assert_eq!(placed, size);
            }
            let placed = placer.receive_with(&whole, Moment(0), |place, raw: &[u16], to| {
                assert_eq!((place.module, place.header.frame_number.get()), (0, 3));
                assert_eq!((raw.len(), to.len()), (4096, 4096));
                for (n, (to, &raw)) in to.iter_mut().zip(raw).enumerate() {
                    *to = convert(raw, place.first_pixel + n);
                }
            });
            assert_eq!(placed, Ok(()));
        }
        // Raw pixels of another size are refused, and not placed.
        let placed = placer.place_with(
            geometry.stream(lost),
            &geometry.payload(lost),
            Moment(0),
            |_, _: &[u32], _| {},
        );
        assert_eq!(placed, size);
        let image = poll(&mut reader, TIMEOUT).remove(0);
        assert_eq!(
            image.losses().collect::<Vec<_>>(),
            [Loss {
                module: 0,
                rows: 280..284
            }]
        );
        let raw = geometry.image(&keys);
        for (n, (&pixel, raw)) in image
            .pixels()
            .iter()
            .zip(raw.as_chunks::<2>().0)
            .enumerate()
        {
            if (280..284).contains(&(n / 1024)) {
                assert!(pixel.is_nan(), "{n}");
            } else {
                let expected = convert(u16::from_le_bytes(*raw), n);
                assert_eq!(pixel.to_bits(), expected.to_bits(), "{n}");
            }
        }
    }
}

#[test]
fn missing_pixels_have_the_code_of_their_type() {
    fn missing<P: Pixel + Stored>() -> P {
        let geometry = geometries()[0];
        let (mut placer, mut reader) =
            images::<P>(&geometry.config(DiscardPolicy::Nothing)).unwrap();
        for frame in [0, 2] {
            let key = geometry.keys(frame)[1];
            let payload = geometry.payload(key);
            let write = |_: Placement<'_>, _: &[u16], to: &mut [P]| to.fill(P::SATURATED);
            let at = Moment(0);
            assert_eq!(
                placer.place_with(geometry.stream(key), &payload, at, write),
                Ok(())
            );
        }
        let images = poll(&mut reader, TIMEOUT);
        assert_eq!(images.len(), 3);
        // The empty image between has the same code.
        assert!(images[1].pixels().len() == 512 * 1024);
        assert!(images[1].pixels().iter().all(|pixel| !pixel.is_valid()));
        assert!(
            images[0].pixels()[4096..8192]
                .iter()
                .all(|&pixel| pixel == P::SATURATED)
        );
        images[0].pixels()[0]
    }
    assert_eq!(missing::<i16>(), i16::MIN);
    assert_eq!(missing::<i32>(), i32::MIN);
    assert!(missing::<f32>().is_nan());
}
