//! `--check`: what can be seen of a run without opening anything of it.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use anyhow::{Context, Result};
use pollux_mempool::region::PageSize;
use pollux_mempool::{Mempool, PoolConfig};
use pollux_pmd::Registry;
use pollux_program::can_be_written;

use crate::cli::Cli;
use crate::plan::Plan;
use crate::setup;

/// Buffers of a pool that no frame will ever be in.
const BUFFERS: usize = 64;

/// Looks at ports, files and addresses.
///
/// # Errors
/// The first of them that the run would be refused, with its words.
pub fn look(cli: &Cli, plan: &Plan, registry: &Registry) -> Result<()> {
    let pool = Mempool::new(PoolConfig {
        buffers: BUFFERS,
        pages: PageSize::Kib4,
        ..plan.config.memory.pool()
    });
    let pool = pool.context("[memory]")?;
    for spec in &plan.ports {
        if let Some(port) = registry.look(spec)? {
            setup::configure(cli, plan, port, &pool)?;
        }
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

/// Whether the address is this machine's. The port may be in use by the run that is to be followed.
fn local(option: &str, address: SocketAddr) -> Result<()> {
    let bound = TcpListener::bind((address.ip(), 0));
    bound
        .map(drop)
        .with_context(|| format!("{option} {address}"))
}
