//! A switch that snoops.

use std::net::Ipv4Addr;

use crate::netns::namespace::Namespace;

/// A Linux bridge that passes the frames of multicast groups on to their members alone, and asks
/// who they are. There are three cables from it, each to an interface `va` of a host of its own,
/// which has the address 02:00:00:00:01:0N and is at the bridge's port `pN`, N from 0 on.
#[derive(Debug)]
pub struct Switch {
    bridge: Namespace,
    /// Where the ends of the cables are.
    pub hosts: [Namespace; 3],
}

impl Switch {
    /// A switch that speaks a version of IGMP. `None`, and the reason on stdout, where there can be
    /// none.
    #[must_use]
    pub fn new(version: u8) -> Option<Self> {
        let bridge = Namespace::new()?;
        let hosts = [Namespace::new()?, Namespace::new()?, Namespace::new()?];
        // In hundredths of a second. The first queries come soon after it is up, and two when a
        // member has left.
        let made = bridge.exec(&format!(
            "ip link add br0 type bridge mcast_snooping 1 mcast_igmp_version {version} \
             mcast_startup_query_interval 100 mcast_startup_query_count 20 \
             mcast_query_response_interval 50 mcast_last_member_interval 20"
        ));
        let asked = bridge.exec("bridge mdb show");
        for output in [made, asked] {
            if !output.status.success() {
                let why = String::from_utf8_lossy(&output.stderr);
                println!("skipped: no bridge that snoops: {}", why.trim());
                return None;
            }
        }
        // Queries are from the bridge's own address.
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

    /// The ports of the bridge at which it knows members of a group.
    #[must_use]
    pub fn members(&self, group: Ipv4Addr) -> Vec<String> {
        let shown = self.bridge.exec("bridge mdb show dev br0");
        assert!(shown.status.success());
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        let member = |line: &str| {
            let words: Vec<_> = line.split_whitespace().collect();
            let after = |key| {
                let at = words.iter().position(|&word| word == key)?;
                words.get(at + 1).copied()
            };
            let is_asked_for = after("grp") == Some(&group.to_string());
            is_asked_for
                .then(|| after("port").map(Into::into))
                .flatten()
        };
        shown.lines().filter_map(member).collect()
    }
}
