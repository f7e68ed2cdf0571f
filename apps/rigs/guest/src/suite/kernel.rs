//! The machine's kernel at the other end, with its own driver and its sockets.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, thread};

use anyhow::{Context as _, Result, ensure};
use pollux_interop::exchange::{Exchange, Job};
use pollux_interop::frames::{Frames, Kind, Returned};
use pollux_pmd::Ledger;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::net::MacAddr;

use crate::bench::Bench;
use crate::nic::Owner;
use crate::nic::{run, wait_until};
use crate::rig::{End, IP_A, IP_B, Setup, check_ledger, endpoint, job, pool};
use crate::test::Test;
use crate::wire::answer;

pub(crate) const KERNEL: &[Test] = &[
    Test {
        name: "kernel-arp-ping",
        shows: "the kernel finds the port by ARP, and its pings are answered",
        run: ping,
    },
    Test {
        name: "kernel-icmp",
        shows: "the kernel answers the port's pings",
        run: |bench| reply(bench, Kind::Ping),
    },
    Test {
        name: "kernel-udp",
        shows: "datagrams to a socket of the kernel come back",
        run: |bench| reply(bench, Kind::Udp),
    },
];

/// Of devices that finish checksums.
pub(crate) const OFFLOAD: &[Test] = &[Test {
    name: "kernel-udp-offload",
    shows: "datagrams whose checksums are left to the device come back from the kernel",
    run: offload,
}];

/// Datagrams with checksums that the port's device finishes, and the kernel verifies. What the
/// kernel sends may come unfinished.
fn offload(bench: &Bench) -> Result<()> {
    let spec = bench.machine.owner.spec(&bench.a)?;
    let offered = pollux_app::ports::registry().open(&spec)?.capabilities();
    ensure!(
        offered.checksum_offload,
        "{spec} leaves no checksums to its device"
    );
    let setup = Setup {
        checksum_offload: true,
        ..Setup::default()
    };
    exchange(bench, Kind::Udp, setup)
}

/// The kernel's end.
struct Kernel {
    interface: String,
    station: MacAddr,
    /// What its interface had received and sent.
    before: [u64; 2],
}

impl Kernel {
    /// Gives `b` to the kernel, with an address.
    fn take(bench: &Bench) -> Result<Self> {
        bench.b.give_to(Owner::Kernel)?;
        let interface = bench.b.bring_up()?;
        run(&["ip", "address", "flush", "dev", &interface])?;
        let address = format!("{IP_B}/24");
        run(&["ip", "address", "add", &address, "dev", &interface])?;
        let station = fs::read_to_string(format!("/sys/class/net/{interface}/address"))?;
        Ok(Self {
            station: station.trim().parse()?,
            before: counted(&interface)?,
            interface,
        })
    }

    /// Stops the port at the other end: the device, if it counts, and the kernel must have counted
    /// as it did.
    fn stop_and_compare(&self, port: End) -> Result<()> {
        let [received, sent] = port.stop_and_compare()?;
        let [received_before, sent_before] = self.before;
        let ours = [received_before + sent, sent_before + received];
        let mut theirs = Ok(ours);
        // It takes note of what its device has sent some time later.
        let same = wait_until("the kernel has counted as the port has", || {
            theirs = counted(&self.interface);
            theirs.as_ref().map_or(true, |theirs| *theirs == ours)
        });
        let theirs = theirs?;
        same.with_context(|| {
            format!("received and sent by the kernel: {theirs:?}, as the port has it: {ours:?}")
        })
    }
}

/// Frames that an interface has received and sent.
fn counted(interface: &str) -> Result<[u64; 2]> {
    let read = |what| -> Result<u64> {
        let path = format!("/sys/class/net/{interface}/statistics/{what}");
        Ok(fs::read_to_string(path)?.trim().parse()?)
    };
    Ok([read("rx_packets")?, read("tx_packets")?])
}

fn ping(bench: &Bench) -> Result<()> {
    let kernel = Kernel::take(bench)?;
    let (pool, mut ledger) = (pool(2048)?, Ledger::new());
    let mut a = End::open(bench.machine.owner, &bench.a, &pool, Setup::default())?;
    let stop = StopFlag::new();
    let pinged = thread::scope(|scope| {
        let port = scope.spawn(|| answer(&mut a, IP_A, &pool, &mut ledger, &stop));
        let pinged = ["56", "1472", "8000"].map(|size| {
            let address = IP_A.to_string();
            run(&["ping", "-c", "20", "-A", "-W", "10", "-s", size, &address])
        });
        stop.stop();
        (pinged, port.join())
    });
    ensure!(matches!(pinged.1, Ok(Ok(()))), "the port: {:?}", pinged.1);
    for said in pinged.0 {
        let said = said?;
        ensure!(said.contains(" 0% packet loss"), "{said}");
    }
    kernel.stop_and_compare(a)?;
    check_ledger(&pool, &ledger)
}

fn reply(bench: &Bench, kind: Kind) -> Result<()> {
    exchange(bench, kind, Setup::default())
}

/// Frames to the kernel, which answers each.
fn exchange(bench: &Bench, kind: Kind, setup: Setup<'_>) -> Result<()> {
    const COUNT: u64 = 2000;
    /// No larger ones: the kernel would answer a ping of more than a page from a chain.
    const SIZES: [usize; 4] = [64, 333, 1514, 9018];
    let kernel = Kernel::take(bench)?;
    let (pool, mut ledger) = (pool(2048)?, Ledger::new());
    let mut a = End::open(bench.machine.owner, &bench.a, &pool, setup)?;
    run(&[
        "arp",
        "-i",
        &kernel.interface,
        "-s",
        &IP_A.to_string(),
        &a.mac()?.to_string(),
    ])?;
    for queue in &a.rx {
        ledger.add("port", queue.tally());
    }
    let socket = UdpSocket::bind((IP_B, 9000)).context("a socket of the kernel")?;
    socket.set_read_timeout(Some(Duration::from_millis(10)))?;
    let (stop, echoed) = (StopFlag::new(), AtomicU64::new(0));
    let ends = (endpoint(a.mac()?, IP_A), endpoint(kernel.station, IP_B));
    // A larger window could overflow the kernel's sockets, which would drop frames uncounted.
    let job = Job {
        window: 8,
        ..job(COUNT)
    };
    let outcome = thread::scope(|scope| {
        scope.spawn(|| echo(&socket, &stop, &echoed));
        let mut frames = Frames::new(ends, kind, 1, &SIZES, Returned::Reply)?;
        if setup.checksum_offload {
            frames = frames.leaving_checksums();
        }
        let exchange = Exchange::new(&pool, &mut a.rx, &mut a.tx, &mut ledger)?;
        let outcome = exchange.run(&job, &mut frames, &StopFlag::new());
        stop.stop();
        outcome
    })?;
    ensure!(
        outcome.received == COUNT && outcome.corrupt + outcome.duplicate == 0,
        "{}; {}; the kernel echoed {}, and counted {}",
        serde_json::to_string(&outcome)?,
        ledger.balance(),
        echoed.load(Ordering::Relaxed),
        losses(&kernel.interface)?
    );
    kernel.stop_and_compare(a)?;
    check_ledger(&pool, &ledger)
}

/// What the kernel counted as lost: in its interface, and in IP and ICMP. For the message of a test
/// that failed, so that it names the end that lost frames.
fn losses(interface: &str) -> Result<String> {
    let mut lost = Vec::new();
    for counter in fs::read_dir(format!("/sys/class/net/{interface}/statistics"))? {
        let counter = counter?;
        let name = counter.file_name().to_string_lossy().into_owned();
        if ["dropped", "errors", "fifo"]
            .iter()
            .any(|part| name.contains(part))
        {
            lost.push((name, fs::read_to_string(counter.path())?.trim().to_owned()));
        }
    }
    // Two lines for each protocol: names, then values.
    let snmp = fs::read_to_string("/proc/net/snmp")?;
    let lines: Vec<_> = snmp.lines().collect();
    for pair in lines
        .chunks_exact(2)
        .filter(|pair| pair[0].starts_with('I'))
    {
        let counters = pair[0].split(' ').zip(pair[1].split(' ')).skip(1);
        for (name, value) in counters {
            if ["Discards", "Errors", "Fails", "GlobalDrops"]
                .iter()
                .any(|part| name.contains(part))
            {
                lost.push((name.to_owned(), value.to_owned()));
            }
        }
    }
    lost.retain(|(_, value)| value != "0");
    Ok(format!("{lost:?}"))
}

/// A socket that sends back what it receives.
fn echo(socket: &UdpSocket, stop: &StopFlag, echoed: &AtomicU64) -> std::io::Result<()> {
    let mut datagram = vec![0; 65_536];
    while !stop.is_set() {
        match socket.recv_from(&mut datagram) {
            Ok((length, sender)) => {
                socket.send_to(&datagram[..length], sender)?;
                echoed.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
