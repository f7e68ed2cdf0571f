//! Another process with a port of its own, which sends received frames back.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail, ensure};
use pollux_pmd::Ledger;
use pollux_pmd::lcore::StopFlag;
use pollux_pmd::net::MacAddr;

use crate::machine::Machine;
use crate::nic::Nic;
use crate::rig::{End, Setup, check_ledger, pool};
use crate::wire;

/// The process, as the test sees it.
pub(crate) struct Reflector {
    child: Child,
    said: BufReader<ChildStdout>,
    /// Address of its port.
    pub(crate) station: MacAddr,
    /// Where its pool is, for itself and for its device.
    pub(crate) memory: u64,
}

impl Reflector {
    /// Starts it, with more options for its port (with a comma in front), and waits until it
    /// receives.
    pub(crate) fn start(machine: &Machine, nic: &Nic, options: &str) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["reflect", machine.name, &nic.address, options])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut said = BufReader::new(child.stdout.take().context("no output")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        let words = line.trim().strip_prefix("ready ");
        let Some((station, memory)) = words.and_then(|words| words.split_once(' ')) else {
            bail!("the other process ended: {}", child.wait()?);
        };
        let (station, memory) = (station.parse()?, memory.parse()?);
        Ok(Self {
            child,
            said,
            station,
            memory,
        })
    }

    /// Has it stop its port and check its ledger: it does when its input ends.
    pub(crate) fn end(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let mut ledger = String::new();
        self.said.read_to_string(&mut ledger)?;
        print!("{ledger}");
        let status = self.child.wait()?;
        ensure!(status.success(), "the other process: {status}");
        Ok(())
    }

    /// Kills it, whatever it does.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// The process itself.
pub(crate) fn reflect(machine: &'static Machine, nic: &Nic, options: &str) -> Result<()> {
    let (pool, mut ledger) = (pool(4096)?, Ledger::new());
    let setup = Setup {
        queues: machine.queues,
        options,
        ..Setup::default()
    };
    let mut end = End::open(machine.owner, nic, &pool, setup)?;
    println!("ready {} {}", end.mac()?, pool.region().as_ptr().addr());
    let stop = StopFlag::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_line(&mut String::new());
            stop.stop();
        });
        wire::reflect(&mut end, &pool, &mut ledger, &stop)
    })?;
    if options.contains("vfs=") {
        // It counts what its virtual functions carry as well.
        drop(end.stop()?);
    } else {
        end.stop_and_compare()?;
    }
    check_ledger(&pool, &ledger)
}
