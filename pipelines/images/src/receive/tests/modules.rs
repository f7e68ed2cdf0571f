//! Which module a packet is of, and modules that are not who they should be.

use pollux_pipelines::Moment;
use pollux_pmd::stream::StreamId;

use super::super::*;
use super::support::*;

#[test]
fn modules_are_found_by_their_identifier() {
    let geometry = geometries()[2];
    let config = ReceiveConfig {
        route: Route::Modules(vec![100, 101]),
        ..geometry.config(DiscardPolicy::Empty)
    };
    let (mut placer, mut reader) = images::<u16>(&config).unwrap();
    let keys = geometry.keys(9);
    // All on one stream: the identifier says the module, the row the interface.
    for &key in keys.iter().rev() {
        let placed = placer.place(StreamId(7), &geometry.payload(key), Moment(0));
        assert_eq!(placed, Ok(()), "{key:?}");
    }
    let unknown = geometry.encode(keys[0], 102);
    let unknown = placer.place(StreamId(7), &unknown, Moment(0));
    assert_eq!(unknown, Err(placer.causes().unknown));
    check(&geometry, &poll(&mut reader, 0)[0], &keys);
}

/// Frames of two modules, one of which has the other's identifier, or sends to its port.
#[test]
fn two_modules_with_one_identifier_are_detected() {
    let geometry = geometries()[1];
    for by_stream in [true, false] {
        let config = ReceiveConfig {
            route: if by_stream {
                Route::Streams(vec![StreamId(0), StreamId(1)])
            } else {
                Route::Modules(vec![100, 101])
            },
            ..geometry.config(DiscardPolicy::Empty)
        };
        let (mut placer, mut reader) = images::<u16>(&config).unwrap();
        let conflict = Err(placer.causes().conflict);
        for frame in 0..12 {
            let mut own = Vec::new();
            for key in geometry.keys(frame) {
                let payload = geometry.encode(key, 100);
                let at = Moment(frame * TIMEOUT);
                let placed = placer.place(geometry.stream(key), &payload, at);
                assert_eq!(
                    placed,
                    if key.module == 0 { Ok(()) } else { conflict },
                    "{key:?}"
                );
                own.extend(placed.is_ok().then_some(key));
            }
            // The module that came first is whole; the other is missing.
            let images = poll(&mut reader, (frame + 1) * TIMEOUT);
            assert_eq!(images.len(), 1);
            check(&geometry, &images[0], &own);
        }
        let dropped = placer
            .view()
            .balance()
            .dropped_for(placer.causes().conflict);
        assert_eq!(dropped, 12 * 128);
    }
}

#[test]
fn a_stranger_on_a_stream_is_refused_and_a_replaced_module_is_learned() {
    let geometry = geometries()[1];
    let (mut placer, _reader) = images::<u16>(&geometry.config(DiscardPolicy::Empty)).unwrap();
    let conflict = Err(placer.causes().conflict);
    let keys = geometry.keys(0);
    let mut place = |n: usize, id| {
        let payload = geometry.encode(keys[n], id);
        placer.place(StreamId(0), &payload, Moment(0))
    };
    assert_eq!(place(0, 100), Ok(()));
    // One module sends where another does: however often, it is refused.
    for n in 1..100 {
        (0..10).for_each(|n| assert_eq!(place(n, 7), conflict));
        assert_eq!(place(n, 100), Ok(()));
    }
    // It is there alone for some frames: the other was replaced.
    for n in 0..4 * 128 - 1 {
        assert_eq!(place(n % 128, 7), conflict);
    }
    assert_eq!(place(110, 7), Ok(()));
    assert_eq!(place(111, 100), conflict);
    assert_eq!(place(111, 7), Ok(()));
}
