//! Our forwarder and DPDK's by turns, on the same two devices, whose wire is one: what a device
//! sends the other receives, so frames go round for ever. A third device, the kernel's, puts them
//! on the wire and is silent then.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use pollux_pmd::mempool::Burst;
use pollux_pmd::net::MacAddr;

use crate::control::{Control, Figure};
use crate::nic::Owner;
use crate::nic::{self, Nic, run as run_program, wait_until};
use crate::rig::{End, Setup, pool};
use crate::wire::plain;

/// Frames in flight in each direction: as many as two devices with rings of [`RING`] always have
/// room for, and enough for full bursts.
const FRAMES: usize = 128;

const RING: &str = "256";

/// Where our forwarder shows what it has counted.
const PAGE: &str = "127.0.0.1:9464";

/// Warm-up, which is not counted.
const WARM_UP: Duration = Duration::from_millis(100);

pub(crate) fn compare(rounds: u32, duration: Duration) -> Result<()> {
    let mut control = Control::open()?;
    let nics = nic::all()?;
    let [a, b, c] = &nics[..] else {
        bail!("the machine has not three NICs: {nics:?}");
    };
    for nic in [a, b] {
        nic.give_to(Owner::Program)?;
    }
    for round in 0..rounds {
        // Neither is always the first.
        let mut sides = ["ours", "testpmd"];
        sides.rotate_left(round as usize % 2);
        for side in sides {
            let measured = if side == "ours" {
                measure(Ours::start([a, b])?, c, &mut control, duration)
            } else {
                measure(Testpmd::start([a, b])?, c, &mut control, duration)
            };
            let (frames, seconds) = measured.context(side)?;
            control.figure(&Figure::new(side, frames, seconds))?;
        }
    }
    control.end()
}

/// A program that forwards between two devices.
trait Forwarder {
    /// Frames that it has received and sent on.
    fn count(&mut self) -> Result<u64>;
    fn end(self) -> Result<()>;
}

/// How many frames it forwards in how many seconds.
fn measure(
    mut forwarder: impl Forwarder,
    source: &Nic,
    control: &mut Control,
    duration: Duration,
) -> Result<(u64, f64)> {
    inject(source, control)?;
    wait_until("frames go round", || {
        forwarder
            .count()
            .is_ok_and(|count| count > 10 * FRAMES as u64)
    })?;
    thread::sleep(WARM_UP);
    let (before, began) = (forwarder.count()?, Instant::now());
    thread::sleep(duration);
    let (after, seconds) = (forwarder.count()?, began.elapsed().as_secs_f64());
    forwarder.end()?;
    Ok((after - before, seconds))
}

/// Puts the frames on the wire: each goes to both devices. From then on the source hears nothing,
/// so that QEMU has nothing to do for it.
fn inject(source: &Nic, control: &mut Control) -> Result<()> {
    control.set_link("c", true)?;
    let name = source.bring_up()?;
    let pool = pool(2 * FRAMES)?;
    let mut end = End::open(Owner::Kernel, source, &pool, Setup::default())?;
    let frame = plain(MacAddr::BROADCAST, end.mac()?);
    let mut cache = pool.cache(64)?;
    for _ in 0..FRAMES {
        let mut burst = Burst::<1>::new();
        let _ = burst.push(cache.alloc_from(&frame).context("the pool is empty")?);
        wait_until("the kernel takes a frame", || {
            end.tx[0].tx(&mut cache, &mut burst);
            burst.is_empty()
        })?;
    }
    drop((cache, end.stop()?));
    control.set_link("c", false)?;
    run_program(&["ip", "link", "set", &name, "down"])?;
    Ok(())
}

/// `pollux forward`.
struct Ours(Child);

impl Ours {
    fn start(nics: [&Nic; 2]) -> Result<Self> {
        let ports = nics.map(|Nic { address }| format!("pci:{address},promisc=on"));
        let child = Command::new("pollux")
            .args(["--clock", "tsc", "forward"])
            .args(ports)
            .args(["--ring", RING, "--cores", "1", "--quiet", "--metrics", PAGE])
            .spawn()?;
        let ours = Self(child);
        wait_until("our ports are up", || {
            page().is_ok_and(|page| figures(&page, "pollux_link_up").all(|up| up > 0.0))
        })?;
        Ok(ours)
    }
}

/// Its page of metrics.
fn page() -> Result<String> {
    let mut stream = TcpStream::connect(PAGE)?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

/// The values of a metric, whatever its labels.
fn figures<'a>(page: &'a str, name: &'a str) -> impl Iterator<Item = f64> + 'a {
    let samples = page.lines().filter(move |line| line.starts_with(name));
    samples.filter_map(|line| line.rsplit(' ').next()?.parse().ok())
}

impl Forwarder for Ours {
    fn count(&mut self) -> Result<u64> {
        let delivered: f64 = figures(&page()?, "pollux_frames_delivered_total").sum();
        Ok(delivered as u64)
    }

    fn end(mut self) -> Result<()> {
        run_program(&["kill", "-INT", &self.0.id().to_string()])?;
        let status = self.0.wait()?;
        ensure!(status.success(), "pollux forward: {status}");
        Ok(())
    }
}

/// DPDK's `testpmd`, which takes commands.
struct Testpmd {
    child: Child,
    commands: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Testpmd {
    fn start(nics: [&Nic; 2]) -> Result<Self> {
        // What it says is seen when it says it, though this is no terminal.
        let mut child = Command::new("stdbuf")
            .args(["-oL", "dpdk-testpmd"])
            .args(["--lcores", "0@0,1@1", "--in-memory", "-m", "128"])
            .args(nics.map(|Nic { address }| format!("--allow={address}")))
            .args(["--", "-i", "--forward-mode=io", "--total-num-mbufs=4096"])
            .args([format!("--rxd={RING}"), format!("--txd={RING}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let commands = child.stdin.take().context("no input")?;
        let said = BufReader::new(child.stdout.take().context("no output")?);
        let mut testpmd = Self {
            child,
            commands,
            said,
        };
        testpmd.ask("start", "packet forwarding - ports=2")?;
        Ok(testpmd)
    }

    /// Gives a command; the lines up to one that says this.
    fn ask(&mut self, command: &str, last: &str) -> Result<Vec<String>> {
        writeln!(self.commands, "{command}")?;
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.said.read_line(&mut line)? == 0 {
                bail!("it ended: {lines:?}");
            }
            let is_last = line.contains(last);
            lines.push(line);
            if is_last {
                return Ok(lines);
            }
        }
    }
}

impl Forwarder for Testpmd {
    fn count(&mut self) -> Result<u64> {
        let mut sum = 0;
        for port in ["0", "1"] {
            for line in self.ask(&format!("show port stats {port}"), "Tx-pps")? {
                if let Some((_, rest)) = line.split_once("RX-packets:") {
                    let count = rest.split_ascii_whitespace().next().context("no count")?;
                    sum += count.parse::<u64>()?;
                }
            }
        }
        Ok(sum)
    }

    fn end(mut self) -> Result<()> {
        self.ask("stop", "Done.")?;
        // Its status says nothing: some of its drivers crash at the end.
        let _ = self.ask("quit", "Bye...");
        drop(self.commands);
        self.child.wait()?;
        Ok(())
    }
}
