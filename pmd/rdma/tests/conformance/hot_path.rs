//! Hot-path guard: requests, messages and events of shared memory neither allocate nor enter the kernel.

use pollux_pmd_testkit::guard::listen;
use pollux_rdma::{Access, Event, Get, Message, Payload, Put, Receive};

use crate::rig::{A, B, Rig};
use crate::shm::Shm;

const BYTES: u32 = 100_000;

#[test]
fn nothing_allocates_or_enters_the_kernel() {
    let ((), noise) = listen(|ear| {
        let mut rig = Rig::<Shm>::new();
        let own = rig.buffer(A, BYTES as usize, Access::LOCAL);
        let remote = rig.buffer(B, BYTES as usize, Access::ALL);
        let [a, b] = &mut rig.sides;
        let (cookie, immediate) = (1, Some(2));
        let local = own.part(0, BYTES);
        let to = remote.remote();
        ear.during(|| {
            for _ in 0..100 {
                for _ in 0..3 {
                    let to = remote.part(0, BYTES);
                    b.qp.post_receive(Receive { cookie, to }).unwrap();
                }
                b.qp.doorbell();
                let payload = Payload::Indirect(local);
                let put = Put {
                    cookie,
                    payload,
                    to,
                    immediate,
                };
                a.qp.put(put).unwrap();
                for payload in [payload, Payload::Immediate(&[7; 100])] {
                    let message = Message {
                        cookie,
                        payload,
                        immediate,
                    };
                    a.qp.send(message).unwrap();
                }
                let (from, to) = (to, local);
                a.qp.get(Get { cookie, from, to }).unwrap();
                a.qp.doorbell();
                let (mut done, mut received) = (0, 0);
                while done < 4 || received < 3 {
                    let event = a.qp.poll_event();
                    done += u32::from(matches!(event, Some(Event::Done(_))));
                    let event = b.qp.poll_event();
                    received += u32::from(matches!(event, Some(Event::Received(_))));
                }
            }
        });
    });
    noise.assert_none();
}
