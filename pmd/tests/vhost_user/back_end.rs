//! Back ends that violate the protocol, or corrupt the rings.

use std::os::unix::net::UnixListener;

use crate::raw::{GET_FEATURES, Raw, VERSION_1, violations, wait_for_violations};
use crate::support::{Place, Port, pass, spec};

/// Number, flags and payload of a reply.
type Answer<'a> = (u32, u32, &'a [u8]);

/// A message that is sent without waiting for a request.
const UNASKED: u32 = 51;

/// A back end that replies correctly to the first request, and with the given replies to the second
/// and later ones.
fn back_end(listener: &UnixListener, answers: &[Answer<'_>]) -> Raw {
    let (stream, _) = listener.accept().unwrap();
    let mut raw = Raw::new(stream);
    for &(number, flags, payload) in answers {
        // Requests without a reply are read with the next one that has a reply.
        while number != UNASKED
            && raw
                .receive()
                .is_some_and(|(request, _)| request != number && number < 50)
        {}
        raw.flagged(number, flags, payload, &[]);
    }
    raw
}

#[test]
fn a_back_end_that_talks_nonsense_is_left() {
    let place = Place::new();
    let listener = UnixListener::bind(place.socket()).unwrap();
    let mut port = Port::open(&spec(&place.socket(), "packed=off"), 1);
    let features = VERSION_1.to_ne_bytes();
    let answers: [(&str, &[Answer<'_>]); 7] = [
        ("another request's answer", &[(57, 5, &features)]),
        ("no reply at all", &[(GET_FEATURES, 1, &features)]),
        ("another version", &[(GET_FEATURES, 6, &features)]),
        ("too few bytes", &[(GET_FEATURES, 5, &features[..4])]),
        ("too many bytes", &[(GET_FEATURES, 5, &[0; 16])]),
        (
            "more bytes than any message has",
            &[(GET_FEATURES, 5, &[0; 1000])],
        ),
        (
            "a reply without a request",
            &[
                (GET_FEATURES, 5, &features),
                (GET_FEATURES, 5, &features),
                (UNASKED, 1, &[]),
            ],
        ),
    ];
    let mut expected = 0;
    for (name, answers) in answers {
        println!("{name}");
        let raw = back_end(&listener, answers);
        raw.until_closed();
        expected += 1;
        wait_for_violations(&mut port, expected);
    }
    // A legacy device, and a back end that disconnects: no violations. It does so before it
    // replies: a front end that has its features sends it the memory, which then may be lost.
    back_end(&listener, &[(GET_FEATURES, 5, &[0; 8])]).until_closed();
    drop(back_end(&listener, &[]));
    // A correct back end.
    drop(listener);
    std::fs::remove_file(place.socket()).unwrap();
    let mut back = Port::open(&spec(&place.socket(), "role=device,server"), 1);
    back.wait_up(true);
    port.wait_up(true);
    pass(&mut port, &mut back, 0, &[64; 100]);
    pass(&mut back, &mut port, 0, &[64; 100]);
    assert_eq!(violations(&port), expected);
    // The one with a message too many knew the receive buffers, and never took the memory out of
    // its socket: whether it has the memory cannot be observed.
    port.stop_with_leaks(128);
    place.leaks();
    back.stop();
}
