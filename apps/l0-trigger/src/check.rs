//! `--check`: checks a run without opening ports or files.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use anyhow::{Context, Result};
use pollux_app::can_be_written;
use pollux_mempool::region::PageSize;
use pollux_mempool::{Mempool, PoolConfig};

use crate::cli::Cli;
use crate::plan::Plan;
use crate::registries::Registries;
use crate::setup;

/// Buffers of a pool that never holds a frame.
const BUFFERS: usize = 64;

/// Checks ports, files and addresses.
///
/// # Errors
/// The first error that the run would report, with the same text.
pub fn check(cli: &Cli, plan: &Plan, registries: &Registries) -> Result<()> {
    let pool = Mempool::new(PoolConfig {
        buffers: BUFFERS,
        pages: PageSize::Kib4,
        ..plan.config.memory.pool()
    });
    let pool = pool.context("[memory]")?;
    for spec in &plan.ports {
        if let Some(port) = registries.ports.look(spec)? {
            setup::configure(cli, plan, port, &pool)?;
        }
    }
    for output in &plan.outputs {
        output.plan.check(&registries.ports)?;
    }
    let [report, json] = &cli.report.files();
    let files = [
        (report.0, &report.1),
        (json.0, &json.1),
        ("--events-out", &cli.events_out),
        ("--record", &cli.record),
    ];
    for (option, path) in files {
        path.as_deref().map_or(Ok(()), |path| file(option, path))?;
    }
    for (option, address) in [("--metrics", cli.metrics.address()), ("--http", cli.http)] {
        address.map_or(Ok(()), |address| local(option, address))?;
    }
    Ok(())
}

fn file(option: &str, path: &Path) -> Result<()> {
    can_be_written(path).with_context(|| format!("{option} {}", path.display()))
}

/// Whether the address is one of this machine. The port may be in use by the current run.
fn local(option: &str, address: SocketAddr) -> Result<()> {
    let bound = TcpListener::bind((address.ip(), 0));
    bound
        .map(drop)
        .with_context(|| format!("{option} {address}"))
}
