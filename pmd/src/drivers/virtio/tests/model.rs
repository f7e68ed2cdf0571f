//! Model test: one side receives what the other sends, in order and byte for byte, all of it or
//! counted.

use proptest::prelude::*;

use super::*;
use pollux_mempool::Burst;

/// A length, and the lengths of the first segments.
type Frame = (usize, Vec<usize>);

#[derive(Clone, Debug)]
enum Step {
    DriverSends(Vec<Frame>),
    DeviceSends(Vec<Frame>),
    DeviceReceives(usize),
    DriverReceives(usize),
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let len = prop_oneof![4 => 4..200_usize, 2 => 4..2000_usize, 1 => 4..9100_usize];
    let cuts = prop_oneof![2 => Just(vec![]), 1 => prop::collection::vec(1..600_usize, 0..4)];
    prop::collection::vec((len, cuts), 0..40)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        frames().prop_map(Step::DriverSends),
        frames().prop_map(Step::DeviceSends),
        (0..64_usize).prop_map(Step::DeviceReceives),
        (0..64_usize).prop_map(Step::DriverReceives),
    ]
}

/// One direction: frames sent, and frames received.
#[derive(Default)]
struct Flow {
    lens: Vec<usize>,
    /// The next number that may arrive.
    next: usize,
    received: u64,
}

impl Flow {
    fn receive(&mut self, burst: &mut Burst<64>) -> Result<(), TestCaseError> {
        for mbuf in burst.iter() {
            let got = bytes(mbuf);
            let number = number(&got);
            // Omitted ones were refused; the end counts them.
            prop_assert!(number as usize >= self.next, "an old frame");
            let Some(&len) = self.lens.get(number as usize) else {
                return Err(TestCaseError::fail("a frame that was not sent"));
            };
            prop_assert_eq!(got, payload(number, len));
            self.next = number as usize + 1;
            self.received += 1;
        }
        burst.clear();
        Ok(())
    }
}

fn run(
    size: u16,
    features: RingFeatures,
    rooms: [(usize, usize); 2],
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let [driver, device] = rooms.map(|(room, headroom)| Side::new(600, room, headroom));
    let pools = [driver.pool.clone(), device.pool.clone()];
    let mut pair = Pair::new(size, features, driver, device);
    let (mut to_device, mut to_driver) = (Flow::default(), Flow::default());
    let mut burst = Burst::<64>::new();
    for step in steps {
        match step {
            Step::DriverSends(frames) | Step::DeviceSends(frames) => {
                let by_driver = matches!(step, Step::DriverSends(_));
                let (side, flow) = if by_driver {
                    (&mut pair.driver, &mut to_device)
                } else {
                    (&mut pair.device, &mut to_driver)
                };
                let first = flow.lens.len();
                for (n, (len, cuts)) in frames.iter().enumerate() {
                    let content = payload((first + n) as u32, *len);
                    let Some(mbuf) = side.frame(&content, cuts) else {
                        break;
                    };
                    burst.push(mbuf).unwrap();
                }
                let taken = if by_driver {
                    pair.driver_sends(&mut burst.as_mut())
                } else {
                    pair.device_sends(&mut burst.as_mut())
                };
                let flow = if by_driver {
                    &mut to_device
                } else {
                    &mut to_driver
                };
                flow.lens.extend(frames[..taken].iter().map(|(len, _)| len));
                burst.clear();
            }
            Step::DeviceReceives(n) => {
                let got = pair.device_receives(&mut burst.up_to(*n));
                prop_assert_eq!(got, burst.len());
                to_device.receive(&mut burst)?;
            }
            Step::DriverReceives(n) => {
                let got = pair.driver_receives(&mut burst.up_to(*n));
                prop_assert_eq!(got, burst.len());
                to_driver.receive(&mut burst)?;
            }
        }
    }
    while pair.device_receives(&mut burst.as_mut()) > 0 {
        to_device.receive(&mut burst)?;
    }
    while pair.driver_receives(&mut burst.as_mut()) > 0 {
        to_driver.receive(&mut burst)?;
    }
    prop_assert!(!pair.is_broken());
    pair.driver_tx
        .finish(&TscClock::get(), LINGER, &mut pair.driver.sent);
    let Pair { driver, device, .. } = &pair;
    for (flow, sent, tally) in [
        (&to_device, &driver.sent, &device.tally),
        (&to_driver, &device.sent, &driver.tally),
    ] {
        let (sent, balance) = (sent.view(), tally.view().balance());
        prop_assert_eq!(sent.packets() + sent.errors(), flow.lens.len() as u64);
        prop_assert_eq!(sent.packets(), flow.received);
        prop_assert_eq!(balance.from_wire, flow.received);
        prop_assert_eq!(balance.dropped_total(), 0);
        prop_assert_eq!(balance.bytes, sent.bytes());
    }
    drop((pair, burst));
    for pool in pools {
        prop_assert_eq!(pool.available(), pool.buffers());
    }
    Ok(())
}

proptest! {
    // A case is one for each choice of features: 42 cases, or fewer where `PROPTEST_CASES` says so.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 6))]

    #[test]
    fn what_is_sent_arrives(
        asked in 1..=300_u16,
        rooms in prop::array::uniform2((
            prop::sample::select(vec![2048_usize, 256, 600]),
            prop::sample::select(vec![128_usize, 0, 12]),
        )),
        steps in prop::collection::vec(step(), 1..30),
    ) {
        for features in all_features() {
            let size = if features.packed { asked } else { asked.next_power_of_two() };
            run(size, features, rooms, &steps)?;
        }
    }
}

/// Jumbo frames through rings of every small size, which covers all wraps and all fill levels.
#[test]
fn chains_wrap_around_every_small_ring() {
    for size in 1..=24 {
        for features in all_features() {
            if !features.packed && !u16::is_power_of_two(size) {
                continue;
            }
            let frames: Vec<Frame> = (1..8).map(|n| (n * 700, vec![100; n % 4])).collect();
            let steps: Vec<_> = (0..40)
                .map(|n| match n % 4 {
                    0 => Step::DriverSends(frames.clone()),
                    1 => Step::DeviceReceives(n),
                    2 => Step::DeviceSends(frames.clone()),
                    _ => Step::DriverReceives(n),
                })
                .collect();
            run(size, features, [(600, 128), (256, 12)], &steps).unwrap();
        }
    }
}
