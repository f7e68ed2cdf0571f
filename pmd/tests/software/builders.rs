//! Specs by builder and by text.

use std::collections::BTreeSet;

use pollux_pmd::builders::{
    Attach, Checksums, Descriptors, Fanout, OtherFrames, Pace, Role, Stamps, XdpMode,
};
use pollux_pmd::driver::filter::Multicast;
use pollux_pmd::driver::flow::FlowRule;
use pollux_pmd::driver::rss::{RssKey, RssTable};
use pollux_pmd::mempool::time::Ns;
use pollux_pmd::net::MacAddr;
use pollux_pmd::{Port, PortError, PortSpec, Probed, Registry};

const STATION: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const GROUP: MacAddr = MacAddr([1, 0, 0x5e, 0, 0, 0xfb]);

/// Each option of each driver, as text and by the builder.
#[allow(clippy::too_many_lines)] // one for each option
fn pairs() -> Vec<(&'static str, PortSpec)> {
    macro_rules! pairs {
        ($($text:literal = $builder:expr,)*) => { vec![$(($text, $builder.into()),)*] };
    }
    let rules = [FlowRule::udp_port(5000, 0), FlowRule::udp_port(5001, 1)];
    let groups = Multicast::Listed(vec![GROUP]);
    let key = RssKey::new(&[0x5a; 40]);
    let table = RssTable::new(&[0, 1, 1, 1]);
    let af_packet = || Port::af_packet("eth0");
    let tap = || Port::tap("pol0");
    let unix = || Port::unix("/run/a.sock", "/run/b.sock");
    let xdp = || Port::af_xdp("eth0");
    let vhost = || Port::vhost_user("/run/x.sock");
    let pci = || Port::pci("0000:03:00.0");
    let dpdk = || Port::dpdk("net_tap0,iface=x");
    pairs! {
        "loopback" = Port::loopback(),
        "null:size=0" = Port::null().size(0),
        "pcap:rx=a.pcap" = Port::pcap().rx("a.pcap"),
        "pcap:tx=b.pcap" = Port::pcap().tx("b.pcap"),
        "pcap:rx=a.pcap,pace=recorded" = Port::pcap().rx("a.pcap").pace(Pace::Recorded),
        "pcap:rx=a.pcap,pace=fast" = Port::pcap().rx("a.pcap").pace(Pace::Fast),
        "pcap:rx=a.pcap,loop=0" = Port::pcap().rx("a.pcap").repeat(0),
        "af_packet:eth0,frame=4096" = af_packet().frame(4096),
        "af_packet:eth0,ring=64" = af_packet().ring(64),
        "af_packet:eth0,fanout=hash" = af_packet().fanout(Fanout::Hash),
        "af_packet:eth0,fanout=cpu" = af_packet().fanout(Fanout::Cpu),
        "af_packet:eth0,fanout=queue" = af_packet().fanout(Fanout::Queue),
        "af_packet:eth0,timestamps=kernel" = af_packet().timestamps(Stamps::Kernel),
        "af_packet:eth0,timestamps=hardware" = af_packet().timestamps(Stamps::Hardware),
        "af_packet:eth0,promisc" = af_packet().promisc(true),
        "af_packet:eth0,multicast=all" = af_packet().multicast(&Multicast::All),
        "af_packet:eth0,multicast=01:00:5e:00:00:fb" = af_packet().multicast(&groups),
        "af_packet:eth0,qdisc=off" = af_packet().qdisc(false),
        "tap:pol0,mac=02:00:00:00:00:01" = tap().mac(STATION),
        "tap:pol0,mtu=9000" = tap().mtu(9000),
        "tap:pol0,up=on" = tap().up(true),
        "tap:pol0,persist=off" = tap().persist(false),
        "unix:/run/a.sock,peer=/run/b.sock,mac=02:00:00:00:00:01" = unix().mac(STATION),
        "unix:/run/a.sock,peer=/run/b.sock,mtu=4200" = unix().mtu(4200),
        "af_xdp:eth0,queue=2" = xdp().queue(2),
        "af_xdp:eth0,ring=64" = xdp().ring(64),
        "af_xdp:eth0,mode=auto" = xdp().mode(XdpMode::Auto),
        "af_xdp:eth0,mode=copy" = xdp().mode(XdpMode::Copy),
        "af_xdp:eth0,mode=zerocopy" = xdp().mode(XdpMode::Zerocopy),
        "af_xdp:eth0,attach=auto" = xdp().attach(Attach::Auto),
        "af_xdp:eth0,attach=native" = xdp().attach(Attach::Native),
        "af_xdp:eth0,attach=skb" = xdp().attach(Attach::Skb),
        "af_xdp:eth0,other=port" = xdp().other(OtherFrames::Port),
        "af_xdp:eth0,other=kernel" = xdp().other(OtherFrames::Kernel),
        "af_xdp:eth0,other=drop" = xdp().other(OtherFrames::Drop),
        "af_xdp:eth0,ports=5000-5099" = xdp().ports(5000..=5099),
        "af_xdp:eth0,steer=5000:0+5001:1" = xdp().steer(&rules),
        "af_xdp:eth0,wakeup=off" = xdp().wakeup(false),
        "af_xdp:eth0,busy-poll=20" = xdp().busy_poll(20),
        "af_xdp:eth0,checksums=verify" = xdp().checksums(Checksums::Verify),
        "af_xdp:eth0,checksums=trust" = xdp().checksums(Checksums::Trust),
        "af_xdp:eth0,promisc=on" = xdp().promisc(true),
        "af_xdp:eth0,multicast=all" = xdp().multicast(&Multicast::All),
        "vhost-user:/run/x.sock,role=driver" = vhost().role(Role::Driver),
        "vhost-user:/run/x.sock,role=device" = vhost().role(Role::Device),
        "vhost-user:/run/x.sock,server" = vhost().server(true),
        "vhost-user:/run/x.sock,queues=4" = vhost().queues(4),
        "vhost-user:/run/x.sock,ring=256" = vhost().ring(256),
        "vhost-user:/run/x.sock,packed=off" = vhost().packed(false),
        "vhost-user:/run/x.sock,in-order=off" = vhost().in_order(false),
        "vhost-user:/run/x.sock,mergeable=off" = vhost().mergeable(false),
        "vhost-user:/run/x.sock,mac=02:00:00:00:00:01" = vhost().mac(STATION),
        "vhost-user:/run/x.sock,mtu=9000" = vhost().mtu(9000),
        "vhost-user:/run/x.sock,role=device,sealed=on" = vhost().role(Role::Device).sealed(true),
        "pci:0000:03:00.0,noiommu=on" = pci().noiommu(true),
        "pci:0000:03:00.0,vf_token=00112233-4455-6677-8899-aabbccddeeff" =
            pci().vf_token("00112233-4455-6677-8899-aabbccddeeff"),
        "pci:0000:03:00.0,mtu=9000" = pci().mtu(9000),
        "pci:0000:03:00.0,promisc=off" = pci().promisc(false),
        "pci:0000:03:00.0,unicast=02:00:00:00:00:01+02:00:00:00:00:01" =
            pci().unicast(&[STATION, STATION]),
        "pci:0000:03:00.0,multicast=01:00:5e:00:00:fb" = pci().multicast(&groups),
        "pci:0000:03:00.0,descriptors=extended" = pci().descriptors(Descriptors::Extended),
        "pci:0000:03:00.0,descriptors=legacy" = pci().descriptors(Descriptors::Legacy),
        "pci:0000:03:00.0,rss-key=5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a" =
            pci().rss_key(&key),
        "pci:0000:03:00.0,rss-table=0+1+1+1" = pci().rss_table(&table),
        "pci:0000:03:00.0,vlans=5+6" = pci().vlans(&[5, 6]),
        "pci:0000:03:00.0,vfs=2" = pci().vfs(2),
        "pci:0000:03:00.0,vfs=1,vf-macs=02:00:00:00:00:01" = pci().vfs(1).vf_macs(&[STATION]),
        "pci:0000:03:00.0,vfs=1,vf-vlans=5" = pci().vfs(1).vf_vlans(&[5]),
        "pci:0000:03:00.0,ip=10.0.0.1+10.0.0.2" =
            pci().ip(&[[10, 0, 0, 1].into(), [10, 0, 0, 2].into()]),
        "pci:0000:03:00.0,mac=02:00:00:00:00:01" = pci().mac(STATION),
        "pci:0000:03:00.0,loop=on" = pci().loop_back(true),
        "pci:0000:03:00.0,hold=500" = pci().hold(Ns(500)),
        "pci:0000:03:00.0,wake-events=8" = pci().wake_events(8),
        "pci:0000:03:00.0,wake-hold=500" = pci().wake_hold(Ns(500)),
        "pci:0000:03:00.0,clock=24.95" = pci().clock(24.95),
        "pci:0000:03:00.0,clock-tolerance=2" = pci().clock_tolerance(Ns(2)),
        "pci:0000:03:00.0,preset=1000" = pci().preset(Ns(1000)),
        "dpdk:net_tap0;iface=x,eal=--no-pci+-a;b" = dpdk().eal(&["--no-pci", "-a,b"]),
        "dpdk:net_tap0;iface=x,mtu=9000" = dpdk().mtu(9000),
        "dpdk:net_tap0;iface=x,steer=5000:0+5001:1" = dpdk().steer(&rules),
        "dpdk:net_tap0;iface=x,timestamps=none" = dpdk().timestamps(None),
        "dpdk:net_tap0;iface=x,timestamps=hardware" = dpdk().timestamps(Some(Stamps::Hardware)),
        "dpdk:net_tap0;iface=x,promisc=on" = dpdk().promisc(true),
        "dpdk:net_tap0;iface=x,multicast=all" = dpdk().multicast(&Multicast::All),
    }
}

#[test]
fn a_builder_makes_the_spec_that_the_text_is() {
    let registry = Registry::builtin();
    for (text, built) in pairs() {
        assert_eq!(built, text.parse().unwrap(), "{text}");
        // What it prints is the same spec, and one that its driver takes.
        assert_eq!(built, built.to_string().parse().unwrap(), "{text}");
        registry.check(text).unwrap();
    }
}

#[test]
fn each_option_of_each_driver_has_a_builder() {
    let built = pairs();
    for driver in Registry::builtin().descriptions() {
        let of_driver = built
            .iter()
            .filter(|(_, spec)| spec.driver() == driver.name);
        let specs: Vec<_> = of_driver.map(|(_, spec)| spec).collect();
        assert!(!specs.is_empty(), "{}", driver.name);
        let missing: BTreeSet<_> = driver
            .options
            .iter()
            .map(|option| option.key)
            .filter(|key| specs.iter().all(|spec| spec.option(key).is_none()))
            .collect();
        assert!(missing.is_empty(), "{}: {missing:?}", driver.name);
    }
}

#[test]
fn a_builder_opens_its_port_as_the_text_does() {
    let registry = Registry::builtin();
    let port = Port::null().size(100).open(&registry).unwrap();
    assert_eq!(port.spec(), "null:size=100");
    let error = |port: Result<Port<Probed>, PortError>| port.map(drop).unwrap_err().to_string();
    assert_eq!(
        error(Port::pci("nowhere").open(&registry)),
        error(registry.open("pci:nowhere"))
    );
    assert_eq!(
        error(Port::pci("0000:03:00.0").open(&registry)),
        error(registry.open("pci:0000:03:00.0"))
    );
}
