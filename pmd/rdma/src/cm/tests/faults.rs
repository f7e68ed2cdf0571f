//! Messages that are lost, doubled and late.

use proptest::prelude::*;

use super::*;

/// A fate of most messages is to arrive.
fn fates() -> impl Strategy<Value = Vec<u8>> {
    let fate = prop_oneof![2 => Just(0_u8), 2 => Just(1_u8), 1 => Just(2_u8), 1 => Just(3_u8)];
    prop::collection::vec(fate, 0..15)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Fewer messages are lost than are repeated: there is a connection, and both ends agree. Then either
    /// end asks to end it, over a network that is no better.
    #[test]
    fn both_ends_agree_whatever_is_lost(first in fates(), second in fates(), by in 0..2_usize) {
        let mut network = Network::new(&first);
        network.connect();
        network.run(30_000);
        prop_assert!(network.hosts.iter().all(Host::is_established), "{:?}", network.hosts[0].seen);
        let [ours, theirs] = network.hosts.each_ref().map(|host| host.agreed.unwrap());
        prop_assert_eq!(ours.path.first_psn, Some(theirs.peer.psn));
        prop_assert_eq!(theirs.path.first_psn, Some(ours.peer.psn));
        // Each is told once.
        let requests = network.hosts[1].seen.iter().filter(|event| matches!(event, CmEvent::Requested { .. }));
        prop_assert_eq!(requests.count(), 1);

        network.fates = second.into();
        let id = network.hosts[by].seen.iter().find_map(|event| match event {
            CmEvent::Established { id } | CmEvent::Accepted { id, .. } => Some(*id),
            _ => None,
        });
        network.hosts[by].cm.disconnect(id.unwrap(), network.now).unwrap();
        network.run(30_000);
        for host in &network.hosts {
            let ends = host.seen.iter().filter(|event| matches!(event, CmEvent::Disconnected { .. }));
            prop_assert_eq!(ends.count(), 1, "{:?}", &host.seen);
        }
    }

    /// The network goes away after some messages. When it is back neither end waits for the other: there
    /// is a connection of both, or either end finds that there is none.
    #[test]
    fn both_ends_give_up_a_dead_network(alive in 0..4_usize) {
        let mut fates = vec![0; alive];
        fates.resize(64, 1);
        let mut network = Network::new(&fates);
        let id = network.connect();
        network.run(40_000);
        let [active, passive] = network.hosts.each_ref().map(Host::is_established);
        match alive {
            // REQ, REP and RTU have arrived.
            3 => prop_assert!(active && passive),
            // The passive end has no RTU, and gives up; the active one believes in the connection until
            // it asks to end it.
            2 => {
                prop_assert!(active && !passive);
                network.fates.clear();
                network.hosts[0].cm.disconnect(id, network.now).unwrap();
                network.run(10);
                prop_assert!(network.hosts.iter().all(Host::is_over));
            }
            _ => prop_assert!(network.hosts[0].is_over() && !passive),
        }
    }
}
