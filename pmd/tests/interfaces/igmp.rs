//! Memberships on a switch that snoops: a Linux bridge that asks, and passes the frames of a group
//! on to the members alone.

use std::net::Ipv4Addr;
use std::time::Instant;

use pollux_mempool::time::Ns;
use pollux_netns::{MAC_B, Namespace, payload, udp_frame};
use pollux_pmd::net::MacAddr;
use pollux_pmd::net::igmp::{IgmpHost, group_stations};
use pollux_pmd::{Clock, TscClock};

use crate::common::{PATIENCE, Port};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
const SENDER: &str = "sender";

/// A bridge with three cables: to a member, to one who is none, and to who sends.
struct Switch {
    bridge: Namespace,
    hosts: [Namespace; 3],
}

impl Switch {
    /// With a querier of a version of IGMP. `None`, and the reason on stdout, where that cannot be.
    fn new(version: u8) -> Option<Self> {
        let bridge = Namespace::new()?;
        let hosts = [Namespace::new()?, Namespace::new()?, Namespace::new()?];
        let has_bridge = pollux_netns::run("bridge -V").status.success();
        // Queries are from the bridge's address. The first ones come soon after it is up; a member
        // is asked for a second after it has left.
        let made = bridge.exec(&format!(
            "ip link add br0 type bridge mcast_snooping 1 mcast_igmp_version {version} \
             mcast_startup_query_interval 100 mcast_startup_query_count 20 \
             mcast_query_response_interval 50 mcast_last_member_interval 20"
        ));
        if !has_bridge || !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr);
            println!("skipped: no bridge that snoops: {}", why.trim());
            return None;
        }
        bridge.ip("address add 10.77.0.254/24 dev br0");
        for (n, host) in hosts.iter().enumerate() {
            bridge.ip(&format!(
                "link add p{n} type veth peer name va address 02:00:00:00:01:0{n} netns {}",
                host.name()
            ));
            bridge.ip(&format!("link set p{n} master br0 up"));
            host.ip("link set va up");
        }
        bridge.ip("link set br0 up");
        bridge.ip("link set br0 type bridge mcast_querier 1");
        Some(Self { bridge, hosts })
    }

    /// The members of the group, as the bridge knows them.
    fn members(&self) -> Vec<String> {
        let shown = self.bridge.exec("bridge mdb show dev br0");
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let of_group = shown.lines().filter(|line| line.contains("239.1.2.3"));
        let port = |line: &str| {
            let mut words = line.split_whitespace();
            words.find(|&word| word == "port")?;
            words.next().map(Into::into)
        };
        of_group.filter_map(port).collect()
    }
}

/// A port, and its membership.
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

    /// One round of a poll loop; the datagrams that came.
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
    member.poll_until("known", |_| switch.members() == ["p0"]);
    assert_eq!((counts.bad.get(), counts.unsent.get()), (0, 0));

    // The bridge, a querier of its own, floods what it snoops only some time after its start.
    let [_, b, c, d] = GROUP.octets();
    let mut frame = udp_frame(7000, &payload(100, 3));
    frame[..6].copy_from_slice(&[1, 0, 0x5e, b & 0x7f, c, d]);
    frame[6..12].copy_from_slice(&MAC_B);
    frame[30..34].copy_from_slice(&GROUP.octets());
    frame[24..26].fill(0);
    let sum = frame[14..34]
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = sum.sum::<u32>();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    let is_ours = |got: &Vec<u8>| got[42..] == frame[42..];
    let began = Instant::now();
    loop {
        assert!(
            began.elapsed() < PATIENCE,
            "{SENDER}: always flooded, or never heard"
        );
        stranger.poll();
        assert_eq!(sender.send(std::slice::from_ref(&frame)), 1);
        let sent = Instant::now();
        let mut heard = false;
        while !heard && sent.elapsed() < PATIENCE {
            heard = member.poll().iter().any(is_ours);
        }
        assert!(heard, "a member does not hear its group");
        // What goes to all ports comes to all at once, and the member has it.
        let frames = stranger.poll();
        if !frames.iter().any(|got| is_ours(&got.bytes)) {
            break;
        }
    }

    member.host.leave_all(Member::now());
    member.poll_until("left", |member| member.host.has_left());
    member.poll_until("forgotten", |_| switch.members().is_empty());
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
