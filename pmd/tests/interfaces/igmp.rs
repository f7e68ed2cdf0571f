//! Memberships on a snooping switch: a Linux bridge that sends queries, and forwards the frames of
//! a group to its members alone.

use std::net::Ipv4Addr;
use std::time::Instant;

use pollux_mempool::time::Ns;
use pollux_pmd::net::MacAddr;
use pollux_pmd::net::igmp::{IgmpHost, group_stations};
use pollux_pmd::{Clock, TscClock};
use pollux_pmd_testkit::netns::{Namespace, Switch, payload, udp_frame_to};

use crate::common::{PATIENCE, Port};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

/// A port with its membership.
struct Member {
    port: Port,
    host: IgmpHost,
}

impl Member {
    fn now() -> Ns {
        let clock = TscClock::get();
        clock.to_ns(clock.now().0)
    }

    fn join(net: &Namespace) -> Self {
        let groups = group_stations(&[GROUP])
            .iter()
            .map(MacAddr::to_string)
            .collect::<Vec<_>>();
        let spec = format!("af_packet:va,multicast={}", groups.join("+"));
        let port = Port::try_open(net, &spec, 1, 256).unwrap();
        let mac = MacAddr([2, 0, 0, 0, 1, 0]);
        let mut host = IgmpHost::new(mac, Ipv4Addr::new(10, 77, 0, 2), 7);
        host.join(GROUP, Self::now()).unwrap();
        Self { port, host }
    }

    /// One iteration of a poll loop; returns the datagrams received.
    fn poll(&mut self) -> Vec<Vec<u8>> {
        let now = Self::now();
        let frames = self.port.poll();
        let frames = frames.into_iter().map(|frame| frame.bytes);
        let other = frames.filter(|frame| self.host.observe(frame, now).is_err());
        let other = other.filter(|frame| frame[23] == 17).collect();
        let port = &mut self.port;
        while self
            .host
            .poll(now, |frame| port.send(&[frame.to_vec()]) == 1)
        {}
        other
    }

    fn poll_until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let began = Instant::now();
        while !done(self) {
            assert!(began.elapsed() < PATIENCE, "never: {what}");
            self.poll();
        }
    }
}

/// A datagram to the group.
fn to_group(data: &[u8]) -> Vec<u8> {
    udp_frame_to(MacAddr::of_group(GROUP).0, GROUP.octets(), 7000, data)
}

fn a_member_is_known_hears_its_group_and_leaves(version: u8) {
    let Some(switch) = Switch::new(version) else {
        return;
    };
    let [member, stranger, sender] = &switch.hosts;
    let mut stranger = Port::try_open(stranger, "af_packet:va,multicast=all", 1, 256).unwrap();
    let mut sender = Port::try_open(sender, "af_packet:va", 1, 256).unwrap();
    let mut member = Member::join(member);
    let counts = member.host.counts();
    member.poll_until("a query", |_| counts.queries.get() > 0);
    assert_eq!(counts.version.get(), version.into(), "that of the querier");
    member.poll_until("an answer", |_| counts.answers.get() > 0);
    member.poll_until("known", |_| switch.members(GROUP) == ["p0"]);
    assert_eq!((counts.bad.get(), counts.unsent.get()), (0, 0));

    // The bridge floods the frames of groups until its first queries remain unanswered.
    let (frame, mut fence) = (to_group(&payload(100, 3)), to_group(&payload(50, 4)));
    fence[..6].fill(0xff);
    let began = Instant::now();
    loop {
        assert!(began.elapsed() < PATIENCE, "flooded all the time");
        assert_eq!(sender.send(&[frame.clone(), fence.clone()]), 2);
        let (mut at_member, mut at_stranger) = (Vec::new(), Vec::new());
        while !at_member.contains(&fence) || !at_stranger.contains(&fence) {
            assert!(began.elapsed() < PATIENCE, "what is for all does not come");
            at_member.extend(member.poll());
            at_stranger.extend(stranger.poll().into_iter().map(|frame| frame.bytes));
        }
        assert!(at_member.contains(&frame), "a member hears its group");
        if !at_stranger.contains(&frame) {
            break;
        }
    }

    member.host.leave_all(Member::now());
    member.poll_until("left", |member| member.host.has_left());
    member.poll_until("forgotten", |_| switch.members(GROUP).is_empty());
    assert_eq!(counts.leaves.get(), 1);
    member.port.stop();
    sender.stop();
    stranger.stop();
}

#[test]
fn a_bridge_of_version_2_knows_who_is_in_a_group() {
    a_member_is_known_hears_its_group_and_leaves(2);
}

#[test]
fn a_bridge_of_version_3_knows_who_is_in_a_group() {
    a_member_is_known_hears_its_group_and_leaves(3);
}
