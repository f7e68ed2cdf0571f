//! The requester, against packets made of bytes.

use pollux_mempool::time::Ns;
use pollux_rdma::{
    Access, Event, Get, Key, Local, Message, Mtu, PathOptions, Payload, Put, QpKind, Receive,
    RemoteBuffer, Status,
};

use crate::raw::{OWN, Raw, Scene, Seen};
use crate::rig::path;

const FIRST: u32 = OWN.1;
const REMOTE: RemoteBuffer = RemoteBuffer {
    address: 0x7000_0000_0001,
    key: Key(0xabcd),
};

fn scene(options: &PathOptions) -> Scene {
    Scene::new(QpKind::Reliable, Access::LOCAL, options)
}

fn put(scene: &mut Scene, cookie: u64, bytes: u32) {
    let payload = Payload::Indirect(scene.buffer.part(0, bytes));
    let (to, immediate) = (REMOTE, None);
    let request = Put {
        cookie,
        payload,
        to,
        immediate,
    };
    scene.qp.put(request).unwrap();
    scene.qp.doorbell();
}

fn get(scene: &mut Scene, cookie: u64, bytes: u32) {
    let to = scene.buffer.part(0, bytes);
    let from = REMOTE;
    scene.qp.get(Get { cookie, from, to }).unwrap();
    scene.qp.doorbell();
}

fn psns(seen: &[Seen]) -> Vec<u32> {
    seen.iter().map(|seen| seen.psn - FIRST).collect()
}

fn ack(n: u32, syndrome: u8) -> Raw {
    Raw::new(0x11, FIRST + n).aeth(syndrome)
}

/// Cookies and statuses of the events; no cookie of a failure.
fn outcomes(scene: &mut Scene) -> Vec<(Option<u64>, Status)> {
    let outcome = |event| match event {
        Event::Done(done) => (Some(done.cookie), done.status),
        Event::Received(received) => (Some(received.cookie), received.status),
        Event::Failed(failed) => (None, failed.status),
    };
    scene.events().into_iter().map(outcome).collect()
}

/// Polls so long; what was sent, with the microsecond of each poll.
fn wait(scene: &mut Scene, us: u64) -> Vec<(u64, Vec<Seen>)> {
    let start = scene.now.0;
    let mut all = Vec::new();
    while scene.now.0 < start + us * 1000 {
        let seen = scene.poll();
        if !seen.is_empty() {
            all.push(((scene.now.0 - start) / 1000, seen));
        }
    }
    all
}

#[test]
fn packets_of_a_put() {
    let mut scene = scene(&path(Mtu::B256));
    let data: Vec<u8> = (0..600_u32).map(|n| n as u8).collect();
    scene.memory.write(0, &data).unwrap();
    put(&mut scene, 1, 600);
    let seen = scene.poll();
    let codes: Vec<_> = seen.iter().map(|seen| (seen.opcode, seen.ack)).collect();
    assert_eq!(codes, [(0x06, false), (0x07, false), (0x08, true)]);
    assert_eq!(psns(&seen), [0, 1, 2]);
    let reth = [0, 0, 0x70, 0, 0, 0, 0, 1, 0, 0, 0xab, 0xcd, 0, 0, 2, 0x58];
    assert_eq!(seen[0].rest, [&reth[..], &data[..256]].concat());
    assert_eq!(
        (&seen[1].rest[..], &seen[2].rest[..]),
        (&data[256..512], &data[512..])
    );
    assert_eq!(outcomes(&mut scene), []);
    scene.exchange(&[ack(2, 0x1f)]);
    assert_eq!(outcomes(&mut scene), [(Some(1), Status::Ok)]);

    let (payload, immediate) = (Payload::Immediate(&[9; 5]), Some(0x0102_0304));
    scene
        .qp
        .send(Message {
            cookie: 2,
            payload,
            immediate,
        })
        .unwrap();
    scene.qp.doorbell();
    let seen = scene.poll();
    assert_eq!(
        (seen.len(), seen[0].opcode, seen[0].psn),
        (1, 0x05, FIRST + 3)
    );
    assert_eq!(seen[0].rest, [1, 2, 3, 4, 9, 9, 9, 9, 9]);
    scene.stop();
}

#[test]
fn acknowledgements_of_part_of_all_and_of_nothing() {
    let mut scene = scene(&path(Mtu::B256));
    for cookie in 0..3 {
        put(&mut scene, cookie, 512);
    }
    assert_eq!(psns(&scene.poll()), [0, 1, 2, 3, 4, 5]);
    // A ghost: of a packet that was not sent, and of one before the connection.
    let ghosts = [
        ack(6, 0x1f),
        ack(1 << 22, 0x1f),
        Raw::new(0x11, FIRST - 1).aeth(0x1f),
    ];
    assert_eq!(scene.exchange(&ghosts), []);
    let before = (
        scene.host.dropped("unexpected-response"),
        scene.host.dropped("duplicate"),
    );
    assert_eq!(before, (2, 1));
    assert_eq!(outcomes(&mut scene), []);
    // Part of the second.
    scene.exchange(&[ack(2, 0x1f)]);
    assert_eq!(outcomes(&mut scene), [(Some(0), Status::Ok)]);
    // A reserved syndrome.
    scene.exchange(&[ack(5, 0x40)]);
    assert_eq!(outcomes(&mut scene), []);
    scene.exchange(&[ack(5, 0x1f)]);
    assert_eq!(
        outcomes(&mut scene),
        [(Some(1), Status::Ok), (Some(2), Status::Ok)]
    );
    assert_eq!(wait(&mut scene, 1000), []);
    scene.stop();
}

#[test]
fn a_refused_sequence_is_repeated_once() {
    let mut scene = scene(&path(Mtu::B256));
    put(&mut scene, 0, 5 * 256);
    assert_eq!(psns(&scene.poll()), [0, 1, 2, 3, 4]);
    assert_eq!(psns(&scene.exchange(&[ack(2, 0x60)])), [2, 3, 4]);
    // The same again is a duplicate.
    assert_eq!(scene.exchange(&[ack(2, 0x60)]), []);
    assert_eq!(psns(&scene.exchange(&[ack(3, 0x60)])), [3, 4]);
    scene.exchange(&[ack(4, 0x1f)]);
    assert_eq!(outcomes(&mut scene), [(Some(0), Status::Ok)]);
    assert_eq!(scene.host.counts().retransmitted, 5);
    assert_eq!(scene.host.counts().requests, 10);
    scene.stop();
}

#[test]
fn a_time_out_repeats_until_it_is_given_up() {
    // 4.096 us x 2^4.
    let options = PathOptions {
        timeout: 4,
        retry: 3,
        ..path(Mtu::B256)
    };
    let mut scene = scene(&options);
    put(&mut scene, 5, 300);
    put(&mut scene, 6, 1);
    let to = scene.buffer.part(0, 1);
    scene.qp.post_receive(Receive { cookie: 7, to }).unwrap();
    scene.qp.doorbell();
    let sent = wait(&mut scene, 1000);
    let times: Vec<u64> = sent.iter().map(|(us, _)| *us).collect();
    assert!(sent.iter().all(|(_, seen)| psns(seen) == [0, 1, 2]));
    // Polled every microsecond, with one poll between the end of a time and the sending.
    assert_eq!(times.len(), 4, "{times:?}");
    assert!(
        times
            .windows(2)
            .all(|pair| (65..=68).contains(&(pair[1] - pair[0]))),
        "{times:?}"
    );
    let expected = [
        (Some(5), Status::RetryExceeded),
        (None, Status::RetryExceeded),
        (Some(6), Status::Flushed),
        (Some(7), Status::Flushed),
    ];
    assert_eq!(outcomes(&mut scene), expected);
    // What is posted then is flushed too.
    put(&mut scene, 8, 1);
    assert_eq!(scene.poll(), []);
    assert_eq!(outcomes(&mut scene), [(Some(8), Status::Flushed)]);
    scene.stop();
}

#[test]
fn a_peer_that_is_not_ready_is_waited_for() {
    let options = PathOptions {
        rnr_retry: 2,
        timeout: 4,
        ..path(Mtu::B256)
    };
    let mut scene = scene(&options);
    put(&mut scene, 0, 1);
    put(&mut scene, 1, 1);
    assert_eq!(psns(&scene.poll()), [0, 1]);
    // Code 12 is 0.64 ms, and the time of the acknowledgement does not run meanwhile.
    assert_eq!(scene.exchange(&[ack(1, 0x2c)]), []);
    assert_eq!(outcomes(&mut scene), [(Some(0), Status::Ok)]);
    let sent = wait(&mut scene, 700);
    assert_eq!((sent[0].0, psns(&sent[0].1)), (640, vec![1]));
    // Code 0 is 655.36 ms.
    scene.exchange(&[ack(1, 0x20)]);
    scene.now.0 += 655_357_000;
    assert_eq!(scene.poll(), []);
    let sent = wait(&mut scene, 3);
    assert_eq!(psns(&sent[0].1), [1]);
    scene.exchange(&[ack(1, 0x21)]);
    scene.poll();
    let expected = [
        (Some(1), Status::RnrRetryExceeded),
        (None, Status::RnrRetryExceeded),
    ];
    assert_eq!(outcomes(&mut scene), expected);
    scene.stop();
}

#[test]
fn seven_retries_of_a_peer_that_is_not_ready_are_for_ever() {
    let mut scene = scene(&path(Mtu::B256));
    put(&mut scene, 0, 1);
    for _ in 0..300 {
        let sent = wait(&mut scene, 20);
        assert_eq!(psns(&sent[0].1), [0]);
        scene.exchange(&[ack(0, 0x21)]);
    }
    wait(&mut scene, 20);
    scene.exchange(&[ack(0, 0x1f)]);
    assert_eq!(outcomes(&mut scene), [(Some(0), Status::Ok)]);
    scene.stop();
}

#[test]
fn a_request_that_is_refused_fails_the_queue_pair() {
    let refusals = [
        (0x61, Status::RemoteInvalidRequest),
        (0x62, Status::RemoteAccess),
        (0x63, Status::RemoteOperation),
    ];
    for (syndrome, status) in refusals {
        let mut scene = scene(&path(Mtu::B256));
        for cookie in 0..3 {
            put(&mut scene, cookie, 1);
        }
        scene.poll();
        scene.exchange(&[ack(1, syndrome)]);
        scene.poll();
        let expected = [
            (Some(0), Status::Ok),
            (Some(1), status),
            (None, status),
            (Some(2), Status::Flushed),
        ];
        assert_eq!(outcomes(&mut scene), expected);
        scene.stop();
    }
}

#[test]
fn memory_of_its_own_that_is_not_registered_fails_a_request() {
    let mut scene = scene(&path(Mtu::B256));
    put(&mut scene, 0, 1);
    let key = Key(0x7777);
    let payload = Payload::Indirect(Local {
        key,
        offset: 0,
        len: 8,
    });
    let (to, immediate) = (REMOTE, None);
    scene
        .qp
        .put(Put {
            cookie: 1,
            payload,
            to,
            immediate,
        })
        .unwrap();
    scene.qp.doorbell();
    // The one before it is not disturbed.
    assert_eq!(psns(&scene.poll()), [0]);
    assert_eq!(outcomes(&mut scene), []);
    scene.exchange(&[ack(0, 0x1f)]);
    scene.poll();
    let expected = [
        (Some(0), Status::Ok),
        (Some(1), Status::LocalAccess),
        (None, Status::LocalAccess),
    ];
    assert_eq!(outcomes(&mut scene), expected);
    scene.stop();
}

/// Response `n` of a READ of `packets`, of which `from` was the first that was asked for.
fn response(n: u32, from: u32, packets: u32) -> Raw {
    let (is_first, is_last) = (n == from, n == packets - 1);
    let raw = match (is_first, is_last) {
        (true, true) => Raw::new(0x10, FIRST + n).aeth(0x1f),
        (true, false) => Raw::new(0x0d, FIRST + n).aeth(0x1f),
        (false, true) => Raw::new(0x0f, FIRST + n).aeth(0x1f),
        (false, false) => Raw::new(0x0e, FIRST + n),
    };
    raw.data(&[n as u8 + 1; 256])
}

#[test]
fn a_read_that_lacks_a_response_asks_for_the_rest() {
    let mut scene = scene(&path(Mtu::B256));
    get(&mut scene, 0, 5 * 256);
    let seen = scene.poll();
    assert_eq!((seen.len(), seen[0].opcode, seen[0].ack), (1, 0x0c, true));
    // Response 2 is lost: once for all that come behind it the rest is asked for.
    let some = [0, 1, 3, 4].map(|n| response(n, 0, 5));
    let seen = scene.exchange(&some);
    let rest = |n: u32| {
        let mut reth = (REMOTE.address + u64::from(n) * 256).to_be_bytes().to_vec();
        reth.extend(REMOTE.key.0.to_be_bytes());
        reth.extend(((5 - n) * 256).to_be_bytes());
        reth
    };
    assert_eq!((psns(&seen), &seen[0].rest), (vec![2], &rest(2)));
    assert_eq!(scene.host.dropped("psn-gap"), 2);
    scene.exchange(&[response(2, 2, 5)]);
    assert_eq!(outcomes(&mut scene), []);
    // Then the time is over.
    let sent = wait(&mut scene, 70_000);
    assert_eq!((psns(&sent[0].1), &sent[0].1[0].rest), (vec![3], &rest(3)));
    scene.exchange(&[response(3, 3, 5), response(4, 3, 5)]);
    assert_eq!(outcomes(&mut scene), [(Some(0), Status::Ok)]);
    let expected: Vec<u8> = (0..5).flat_map(|n| [n + 1; 256]).collect();
    assert_eq!(scene.bytes(0, 5 * 256), expected);
    scene.stop();
}

#[test]
fn an_acknowledgement_beyond_a_read_says_that_its_responses_are_lost() {
    let mut scene = scene(&path(Mtu::B256));
    put(&mut scene, 0, 1);
    get(&mut scene, 1, 512);
    get(&mut scene, 2, 256);
    assert_eq!(psns(&scene.poll()), [0, 1, 3]);
    let seen = scene.exchange(&[ack(3, 0x1f)]);
    assert_eq!(psns(&seen), [1, 3]);
    assert_eq!(outcomes(&mut scene), [(Some(0), Status::Ok)]);
    let response = |psn, code| Raw::new(code, FIRST + psn).aeth(0x1f).data(&[5; 256]);
    scene.exchange(&[response(1, 0x0d), response(2, 0x0f), response(3, 0x10)]);
    assert_eq!(
        outcomes(&mut scene),
        [(Some(1), Status::Ok), (Some(2), Status::Ok)]
    );
    scene.stop();
}

/// A responder may read after it has executed what comes behind, and reads again what was lost.
#[test]
fn puts_and_messages_wait_until_a_read_has_all_its_responses() {
    let mut scene = scene(&path(Mtu::B256));
    get(&mut scene, 0, 3 * 256);
    put(&mut scene, 1, 512);
    get(&mut scene, 2, 256);
    let (payload, immediate) = (Payload::Immediate(&[9; 5]), None);
    let message = Message {
        cookie: 3,
        payload,
        immediate,
    };
    scene.qp.send(message).unwrap();
    scene.qp.doorbell();
    assert_eq!(psns(&scene.poll()), [0]);
    assert_eq!(scene.exchange(&[response(0, 0, 3), response(1, 0, 3)]), []);
    // The last response is lost; the time is that of the READ.
    let sent = wait(&mut scene, 70_000);
    assert_eq!((sent.len(), psns(&sent[0].1)), (1, vec![2]));
    let sent = scene.exchange(&[response(2, 2, 3)]);
    // The PUT, which sends what has come; behind it the next READ at once.
    let codes: Vec<_> = sent.iter().map(|seen| seen.opcode).collect();
    assert_eq!(
        (psns(&sent), codes),
        (vec![3, 4, 5], vec![0x06, 0x08, 0x0c])
    );
    let data = [&sent[0].rest[16..], &sent[1].rest].concat();
    assert_eq!(data, [[1; 256], [2; 256]].concat());
    assert_eq!(scene.exchange(&[ack(4, 0x1f)]), []);
    let sent = scene.exchange(&[response(5, 5, 6)]);
    assert_eq!((psns(&sent), sent[0].opcode), (vec![6], 0x04));
    scene.exchange(&[ack(6, 0x1f)]);
    let done = [0, 1, 2, 3].map(|cookie| (Some(cookie), Status::Ok));
    assert_eq!(outcomes(&mut scene), done);
    scene.stop();
}

#[test]
fn responses_that_are_too_short_or_too_long_fail() {
    for (code, len) in [(0x0d, 255), (0x0d, 260), (0x10, 256), (0x0f, 256)] {
        let mut scene = scene(&path(Mtu::B256));
        get(&mut scene, 0, 512);
        scene.poll();
        let response = Raw::new(code, FIRST).aeth(0x1f).data(&vec![1; len]);
        scene.exchange(&[response]);
        scene.poll();
        let expected = [(Some(0), Status::LocalLength), (None, Status::LocalLength)];
        assert_eq!(outcomes(&mut scene), expected, "{code:#x} {len}");
        assert!(scene.is_untouched());
        scene.stop();
    }
}

/// Numbers compare over half of their range, and the longest message at the smallest MTU has as many.
#[test]
fn a_get_of_2_gib_takes_half_of_all_numbers() {
    let mut scene = scene(&path(Mtu::B256));
    put(&mut scene, 0, 1);
    get(&mut scene, 1, 1 << 31);
    put(&mut scene, 2, 1);
    // It waits until nothing is in flight, and the next one for its responses.
    assert_eq!(psns(&scene.poll()), [0]);
    assert_eq!(psns(&scene.exchange(&[ack(0, 0x1f)])), [1]);
    assert_eq!(outcomes(&mut scene), [(Some(0), Status::Ok)]);
    let last = Raw::new(0x0f, (FIRST + (1 << 23)) & 0xff_ffff).aeth(0x1f);
    // The last one says that others are lost.
    assert_eq!(psns(&scene.exchange(&[last.data(&[1; 256])])), [1]);
    scene.exchange(&[Raw::new(0x0d, FIRST + 1).aeth(0x1f).data(&[1; 256])]);
    // The memory ends behind 32 of them.
    for n in 2..34 {
        scene.exchange(&[Raw::new(0x0e, FIRST + n).data(&[n as u8; 256])]);
    }
    scene.poll();
    assert_eq!(scene.bytes(31 * 256, 256), [32; 256]);
    let expected = [
        (Some(1), Status::LocalAccess),
        (None, Status::LocalAccess),
        (Some(2), Status::Flushed),
    ];
    assert_eq!(outcomes(&mut scene), expected);
    scene.stop();
}

#[test]
fn a_notification_slows_the_queue_pair_down_for_a_while() {
    let mut scene = scene(&path(Mtu::B4096));
    let number = scene.qp.number();
    assert_eq!(scene.host.poll.rate(number), None);
    let mut notification = Raw::new(0x81, 0);
    notification.rest = vec![0; 16];
    let rates: Vec<f64> = (0..3)
        .map(|_| {
            scene.exchange(&[notification.clone()]);
            scene.host.poll.rate(number).unwrap()
        })
        .collect();
    // Half, as the first estimate is 1.
    assert_eq!(rates, [50e9, 25e9, 12.5e9]);
    put(&mut scene, 0, 8192);
    let sent = wait(&mut scene, 6);
    // A packet of 4 KiB takes 2.6 us.
    let times: Vec<u64> = sent.iter().map(|(us, _)| *us).collect();
    assert_eq!(times, [1, 3], "{sent:?}");
    scene.exchange(&[ack(1, 0x1f)]);
    scene.now = Ns(scene.now.0 + 3_000_000_000);
    put(&mut scene, 1, 1);
    scene.poll();
    scene.poll();
    assert_eq!(scene.host.poll.rate(number), None);
    assert_eq!(scene.host.counts().notified, 3);
    scene.stop();
}
