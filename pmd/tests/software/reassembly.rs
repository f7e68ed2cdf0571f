//! A loop with reassembly neither allocates, nor frees, nor enters the kernel.

use pollux_mempool::time::Ns;
use pollux_pmd::net::{Reassembler, ReassemblyConfig};
use pollux_pmd::{Cause, Tally};
use pollux_pmd_testkit::guard::listen;
use pollux_pmd_testkit::netns::{fragments, payload, udp_frame};

use crate::common::pool;

const BUFFERS: usize = 256;
const ROUND: Ns = Ns(10_000_000);

/// Datagrams that are complete, the first with a copy behind it, that lack a fragment, and that are
/// inconsistent. Each round has their identifications anew, when those of the one before are over.
#[test]
fn reassembly_is_nothing_but_work() {
    let (balance, noise) = listen(|ear| {
        let pool = pool(BUFFERS);
        let (mut cache, mut tally) = (pool.cache(64).unwrap(), Tally::new());
        let config = ReassemblyConfig {
            datagrams: 8,
            timeout: ROUND,
            ..ReassemblyConfig::default()
        };
        let mut reassembler = Reassembler::new(config).unwrap();
        let of = |id: u16| fragments(&udp_frame(9000, &payload(9000, 1)), id, 1480);
        let (mut missing, mut twice) = (of(2), of(3));
        missing.remove(1);
        twice[3] = fragments(&udp_frame(9000, &payload(9000, 2)), 3, 1480).remove(2);
        let copy = vec![of(1).remove(2)];
        let frames = [
            of(1),
            copy,
            missing,
            twice,
            of(4).into_iter().rev().collect(),
        ]
        .concat();
        ear.during(|| {
            for round in 0..500 {
                for frame in &frames {
                    let mut mbuf = cache.alloc().unwrap();
                    mbuf.append(frame.len()).unwrap().copy_from_slice(frame);
                    tally.count_from_wire(1, frame.len() as u64);
                    let now = Ns(round * ROUND.0);
                    if let Some(whole) = reassembler.take(mbuf, now, &mut cache, &mut tally) {
                        tally.count_delivered(whole.frames);
                        cache.free(whole.mbuf);
                    }
                }
            }
            reassembler.finish(&mut cache, &mut tally);
        });
        assert_eq!(pool.available() + cache.len(), BUFFERS);
        tally.view().balance()
    });
    noise.assert_none();
    assert!(balance.is_balanced(), "{balance}");
    assert_eq!(balance.delivered, 500 * 14);
    for cause in [
        Cause::ReassemblyTimeout,
        Cause::ReassemblyOverlap,
        Cause::Duplicate,
    ] {
        assert!(balance.dropped_for(cause) > 0, "{balance}");
    }
}
