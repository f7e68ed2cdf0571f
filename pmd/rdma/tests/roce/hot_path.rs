//! Hot-path guard: the loop neither allocates nor enters the kernel, and neither does the program.

use pollux_pmd::{ClockChoice, TscClock};
use pollux_pmd_testkit::guard::listen;
use pollux_rdma::{
    Access, Event, Get, Message, Mtu, PathOptions, Payload, Put, QpKind, QueuePair, Receive,
};

use crate::rig::{Pair, memory, path};

const BYTES: u32 = 20_000;

/// Requests of all kinds from `a` to `b`, and their events.
fn exchange(pair: &mut Pair, a: &mut QueuePair, b: &mut QueuePair, places: &Places) {
    let cookie = 1;
    let payload = Payload::Indirect(places.local);
    let (to, immediate) = (places.remote, Some(2));
    let receive = Receive {
        cookie,
        to: places.receive,
    };
    // One message finds no receive at first.
    b.post_receive(receive).unwrap();
    b.doorbell();
    a.put(Put {
        cookie,
        payload,
        to,
        immediate,
    })
    .unwrap();
    let message = Message {
        cookie,
        payload: Payload::Immediate(&[7; 100]),
        immediate,
    };
    a.send(message).unwrap();
    let mut expected = 2;
    if a.kind() == QpKind::Reliable {
        let (from, to) = (places.remote, places.local);
        a.get(Get { cookie, from, to }).unwrap();
        expected = 3;
    }
    a.doorbell();
    for _ in 0..100 {
        pair.step();
    }
    b.post_receive(receive).unwrap();
    b.doorbell();
    for _ in 0..3000 {
        pair.step();
        expected -= std::iter::from_fn(|| a.poll_event()).count();
        while b.poll_event().is_some() {}
        if expected == 0 {
            return;
        }
    }
    panic!("{expected} requests are not done");
}

struct Places {
    local: pollux_rdma::Local,
    receive: pollux_rdma::Local,
    remote: pollux_rdma::RemoteBuffer,
}

#[test]
fn nothing_allocates_or_enters_the_kernel() {
    if TscClock::select(ClockChoice::Tsc).is_err() {
        println!("skipped: the kernel's clock is in use");
        return;
    }
    let ((), noise) = listen(|ear| {
        let mut pair = Pair::new();
        let memories = [memory(1 << 16), memory(1 << 16)];
        let buffers = [0, 1].map(|n| pair.hosts[n].register(&memories[n], Access::ALL));
        let places = Places {
            local: buffers[0].part(0, BYTES),
            receive: buffers[1].part(40_000, 1000),
            remote: buffers[1].remote(),
        };
        let options = PathOptions {
            rnr_timer: 1,
            timeout: 6,
            ..path(Mtu::B1024)
        };
        let [mut a, mut b] = pair.connect(QpKind::Reliable, &options);
        let [mut c, mut d] = pair.connect(QpKind::Unreliable, &options);
        // These are destroyed, connected and given up while the loops run.
        let [mut e, f] = pair.connect(QpKind::Reliable, &options);
        ear.during(|| {
            for _ in 0..50 {
                exchange(&mut pair, &mut a, &mut b, &places);
            }
            exchange(&mut pair, &mut c, &mut d, &places);
        });
        drop(f);
        ear.during(|| {
            let message = Message {
                cookie: 1,
                payload: Payload::Immediate(&[]),
                immediate: None,
            };
            e.send(message).unwrap();
            e.doorbell();
            for _ in 0..5000 {
                pair.step();
            }
            assert!(matches!(e.poll_event(), Some(Event::Done(_))));
            assert!(matches!(e.poll_event(), Some(Event::Failed(_))));
        });
        let counts = pair.hosts[0].counts();
        assert!(counts.not_ready > 0 && counts.timeouts > 0, "{counts:?}");
        drop((a, b, c, d, e, buffers));
        pair.stop();
    });
    noise.assert_none();
}
