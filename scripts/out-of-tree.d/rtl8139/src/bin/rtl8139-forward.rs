//! Forwards frames between two RTL8139 until it is interrupted: `rtl8139-forward PORT PORT`, with
//! ports as in `pci:0000:03:00.0,promisc=on`. Ends with its ledger; status 1 if that does not balance.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
use pollux_pmd::{Cause, Ledger, MemoryGrant, PortConfig, Registry, StartedPort, Tally};

fn main() -> Result<(), Box<dyn Error>> {
    let specs: Vec<_> = std::env::args().skip(1).collect();
    if specs.len() != 2 {
        return Err("usage: rtl8139-forward PORT PORT".into());
    }
    let over = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGINT, over.clone())?;
    // SAFETY: the user names the devices and answers for them; nothing else drives them.
    let grant = unsafe { MemoryGrant::new() };
    let registry = Registry::builtin()
        .granting(grant)
        .pci_driver(pollux_rtl8139::DRIVER);
    let pool = Mempool::new(PoolConfig::default())?;
    let mut ledger = Ledger::new();
    let mut ports = Vec::new();
    for spec in &specs {
        let port = registry.open(spec)?;
        let started = port.configure(PortConfig::new(pool.clone()))?.start()?;
        ledger.add(spec.as_str(), started.rx[0].tally());
        ports.push(started);
    }
    let mut forwarded = Tally::new();
    ledger.add("forwarded", forwarded.view());
    println!("ready");
    let (mut cache, mut burst) = (pool.cache(256)?, Burst::<32>::new());
    while !over.load(Ordering::Relaxed) {
        for (from, to) in [(0, 1), (1, 0)] {
            ports[from].rx[0].rx(&mut cache, &mut burst);
            let sent = ports[to].tx[0].tx(&mut cache, &mut burst);
            forwarded.count_delivered(sent as u64);
            forwarded.count_dropped(Cause::TxFull, burst.len() as u64);
            cache.free_burst(&mut burst);
        }
    }
    drop(cache);
    for started in ports {
        let StartedPort { port, mut rx, tx } = started;
        rx[0].sync_counters();
        port.stop(rx, tx)?;
    }
    println!("{}", ledger.check()?);
    if pool.available() != pool.buffers() {
        return Err("buffers are missing".into());
    }
    Ok(())
}
