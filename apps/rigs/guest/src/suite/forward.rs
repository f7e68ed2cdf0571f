//! `pollux forward` between two NICs of ours, each wired to one of the kernel's: iperf3 at both
//! ends, one of them in a network namespace of its own.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::control::Control;
use crate::nic::{PATIENCE, run, wait_until};
use crate::rig::{IP_A, IP_B};
use crate::test::Test;

pub(crate) const FORWARD: &[Test] = &[
    Test {
        name: "iperf3",
        shows: "TCP both ways and UDP of iperf3 between two kernels; no frame is lost uncounted",
        run: iperf3,
    },
    Test {
        name: "unplugged",
        shows: "a program whose device is unplugged ends with its report, a balanced ledger and status 1",
        run: unplugged,
    },
];

const REPORT: &str = "/tmp/forward.json";

/// A program that ends with this.
struct Started(Child);

impl Started {
    fn new(words: &[&str]) -> Result<Self> {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        let child = command.spawn().with_context(|| words.join(" "))?;
        Ok(Self(child))
    }

    /// How it ends; its exit status.
    fn ended(&mut self) -> Result<Option<i32>> {
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status.code());
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        bail!("it does not end")
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The two NICs of the kernel, the second in a namespace of its own, and the forwarder between them.
pub(super) struct ForwardPath {
    /// Keeps the namespace.
    other: Started,
    interfaces: [String; 2],
    forwarder: Started,
}

impl ForwardPath {
    /// `pollux forward` between our two NICs. Frames pass when this returns.
    fn open(bench: &Bench) -> Result<Self> {
        let options = [
            "--cores", "1", "--quiet", "--force", "--report", REPORT, "--clock", "tsc",
        ];
        Self::by(bench, &["pollux", "forward"], &options)
    }

    /// The same by another program, to which the ports are said between these words.
    pub(super) fn by(bench: &Bench, program: &[&str], options: &[&str]) -> Result<Self> {
        let [c, d] = &bench.others[..] else {
            bail!("the machine has not two NICs of the kernel's");
        };
        // It comes back from the namespace of a test that has ended.
        wait_until("both interfaces are there", || d.interface().is_ok())?;
        let interfaces = [c.bring_up()?, d.bring_up()?];
        let other = Started::new(&["unshare", "-n", "sleep", "100"])?;
        let ports = [&bench.a, &bench.b].map(|nic| format!("pci:{},promisc=on", nic.address));
        let ports = [&ports[0][..], &ports[1]];
        let path = Self {
            other,
            forwarder: Started::new(&[program, &ports, options].concat())?,
            interfaces,
        };
        let [near, far] = &path.interfaces;
        let own = fs::read_link("/proc/self/ns/net")?;
        let namespace = format!("/proc/{}/ns/net", path.other.0.id());
        wait_until("there is another namespace", || {
            fs::read_link(&namespace).is_ok_and(|theirs| theirs != own)
        })?;
        // A namespace begins with settings of its own.
        let quiet = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6";
        path.run(true, &["sh", "-c", quiet])?;
        run(&[
            "ip",
            "link",
            "set",
            far,
            "netns",
            &path.other.0.id().to_string(),
        ])?;
        for (inside, interface, address) in [(false, near, IP_A), (true, far, IP_B)] {
            let address = format!("{address}/24");
            path.run(inside, &["ip", "address", "flush", "dev", interface])?;
            path.run(
                inside,
                &["ip", "address", "add", &address, "dev", interface],
            )?;
            path.run(
                inside,
                &["ip", "link", "set", interface, "mtu", "1500", "up"],
            )?;
        }
        wait_until("frames pass", || {
            path.run(false, &["ping", "-c", "1", "-W", "1", &IP_B.to_string()])
                .is_ok()
        })?;
        Ok(path)
    }

    /// Runs a program on the near side, or on the far one.
    pub(super) fn run(&self, inside: bool, words: &[&str]) -> Result<String> {
        if !inside {
            return run(words);
        }
        let process = self.other.0.id().to_string();
        run(&[&["nsenter", "-t", &process, "-n"], words].concat())
    }

    /// Interrupts the forwarder; its exit status.
    pub(super) fn interrupt(&mut self) -> Result<Option<i32>> {
        run(&["kill", "-INT", &self.forwarder.0.id().to_string()])?;
        self.forwarder.ended()
    }

    /// What iperf3 says of a run, from the near side to the far one.
    fn iperf3(&self, options: &[&str]) -> Result<Value> {
        let process = self.other.0.id().to_string();
        let inside = ["nsenter", "-t", &process, "-n"];
        let mut server = Started::new(&[&inside[..], &["iperf3", "-s", "-1"]].concat())?;
        let to = IP_B.to_string();
        let client = [&["iperf3", "-J", "-c", &to], options].concat();
        // Until the server listens, it is refused, and says so in its report.
        let mut said = Err(anyhow::anyhow!("never run"));
        wait_until("the server listens", || {
            said = self.run(false, &client).and_then(|said| {
                let said: Value = serde_json::from_str(&said)?;
                let error = said.get("error");
                ensure!(error.is_none(), "iperf3 {options:?}: {error:?}");
                Ok(said)
            });
            if let Err(error) = &said {
                println!("{error:#}");
            }
            said.is_ok()
        })?;
        ensure!(server.ended()? == Some(0), "the server failed");
        said
    }

    /// Frames that the interfaces have received.
    fn received(&self) -> Result<u64> {
        let mut sum = 0;
        for (inside, interface) in [false, true].into_iter().zip(&self.interfaces) {
            let process = self.other.0.id().to_string();
            let of = if inside { &process } else { "self" };
            let table = fs::read_to_string(format!("/proc/{of}/net/dev"))?;
            let row = table.lines().find_map(|line| {
                let (name, counters) = line.split_once(':')?;
                (name.trim() == interface).then_some(counters)
            });
            let counters = row.with_context(|| format!("no {interface}"))?;
            // Bytes, then packets.
            let packets = counters.split_ascii_whitespace().nth(1);
            sum += packets.context("no count")?.parse::<u64>()?;
        }
        Ok(sum)
    }
}

fn report() -> Result<Value> {
    let report: Value = serde_json::from_str(&fs::read_to_string(REPORT)?)?;
    ensure!(report["ledger"]["balanced"] == true, "{}", report["ledger"]);
    Ok(report)
}

fn iperf3(bench: &Bench) -> Result<()> {
    if !Path::new("/usr/bin/iperf3").exists() {
        println!("skipped: no iperf3 on the host: apt-get install iperf3");
        return Ok(());
    }
    let mut path = ForwardPath::open(bench)?;
    for direction in [&["-t", "1"][..], &["-t", "1", "-R"]] {
        let said = path.iperf3(direction)?;
        let end = &said["end"];
        let bytes = end["sum_received"]["bytes"].as_u64().unwrap_or_default();
        println!(
            "TCP {direction:?}: {bytes} bytes, {}",
            end["sum_sent"]["retransmits"]
        );
        ensure!(
            bytes > 100_000,
            "TCP {direction:?}: {bytes} bytes came: {end}"
        );
    }
    // Few enough for the buffers of sockets that are not read for a while.
    let said = path.iperf3(&["-t", "1", "-u", "-b", "2M", "-l", "1400"])?;
    let udp = &said["end"]["sum"];
    let (packets, lost) = (&udp["packets"], &udp["lost_packets"]);
    println!("UDP: {packets} datagrams, {lost} lost");
    ensure!(
        packets.as_u64() > Some(100) && *lost == json!(0),
        "UDP: {udp}"
    );
    ensure!(path.interrupt()? == Some(0), "pollux forward failed");
    let report = report()?;
    let (ledger, received) = (&report["ledger"], path.received()?);
    println!("{ledger}; the kernels received {received}");
    ensure!(
        ledger["delivered"] == json!(received),
        "not all came: {ledger}; the kernels received {received}"
    );
    // TCP sends more and more until some of it is lost: where a ring is full, and nowhere else.
    let dropped = ledger["dropped"].as_object();
    let mut causes = dropped.into_iter().flatten().map(|(cause, _)| cause);
    ensure!(
        causes.all(|cause| ["tx-full", "ring-full"].contains(&cause.as_str())),
        "frames were lost: {ledger}"
    );
    Ok(())
}

fn unplugged(bench: &Bench) -> Result<()> {
    let mut control = Control::open()?;
    let mut path = ForwardPath::open(bench)?;
    // Without a pause, for as long as it takes.
    let flood = ["ping", "-A", "-q", "-c", "100000", &IP_B.to_string()];
    let before = path.received()?;
    let _pings = Started::new(&flood)?;
    let mut received = Ok(before);
    wait_until("the pings pass", || {
        received = path.received();
        received.as_ref().map_or(true, |&now| now > before + 100)
    })?;
    received?;
    control.monitor("device_del", &json!({"id": "a"}))?;
    let status = path.forwarder.ended()?;
    ensure!(status == Some(1), "pollux forward ended with {status:?}");
    let ledger = &report()?["ledger"];
    println!("{ledger}");
    ensure!(ledger["from_wire"].as_u64() > Some(0), "{ledger}");
    Ok(())
}
