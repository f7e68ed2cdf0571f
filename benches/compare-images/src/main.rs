//! Operations of the image pipeline and their peers, by turns: what `scripts/compare-images` measures
//! with.
//!
//! The program runs on one core. It reads lines from its standard input, `ROW SIDE`, and answers each
//! with a line of JSON: `ours` and `peer` are turns of the two sides, and `check` compares what they
//! compute. Peers in C and those of the kernel's sockets are in this process; of the others
//! (`scripts/lib/images/peer.py`) it writes the input to a folder, and its own results beside it.

mod bitshuffle;
mod convert;
mod data;
mod integrate;
mod peer;
mod receive;
mod row;

use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use pollux_images::integrate::Split;
use serde_json::{Value, json};
use zerocopy::IntoBytes as _;

use crate::bitshuffle::Compress;
use crate::convert::{Convert, ConvertVetoCsr};
use crate::data::Data;
use crate::integrate::Integrate;
use crate::peer::Peer;
use crate::receive::{Link, ReceivePlace};
use crate::row::{Facts, Row};

/// Measures operations of the image pipeline and of their peers. See scripts/compare-images.
#[derive(Parser)]
struct Options {
    /// Folder for the data that other processes share.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Folder of recorded frames; without it they are emulated.
    #[arg(long, value_name = "FOLDER")]
    recorded: Option<PathBuf>,
    /// Frames of a turn.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    frames: u16,
    /// Core that measures, and the one that sends.
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_values_t = [0, 1])]
    cores: Vec<usize>,
    /// Rows; without it all.
    #[arg(long, value_name = "ROW,...", value_delimiter = ',')]
    only: Vec<String>,
}

/// Names of the rows.
const ROWS: [&str; 10] = [
    "convert",
    "convert_native",
    "convert_veto_csr",
    "convert_veto_csr_native",
    "integrate_nosplit",
    "integrate_full",
    "bitshuffle_lz4",
    "bitshuffle_lz4_raw",
    "receive_place",
    "receive_place_af_packet",
];

fn main() -> Result<()> {
    let options = Options::parse();
    let &[core, sender] = &options.cores[..] else {
        bail!("--cores: give two, A,B");
    };
    let pinned = core_affinity::set_for_current(core_affinity::CoreId { id: core });
    ensure!(pinned, "core {core} cannot be used");
    let data = Rc::new(Data::new(
        options.recorded.as_deref(),
        options.frames.into(),
    )?);
    let mut rows = Vec::new();
    for name in ROWS {
        if options.only.is_empty() || options.only.iter().any(|only| only == name) {
            rows.push(row(name, &data, &options, sender).with_context(|| name)?);
        }
    }
    let facts: Vec<_> = rows.iter().map(|row| facts(&row.facts())).collect();
    answer(&json!({ "data": data.name, "frames": data.frames.len(), "rows": facts }))?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let turn =
            turn(&mut rows, &line).unwrap_or_else(|why| json!({ "error": format!("{why:#}") }));
        answer(&turn)?;
    }
    Ok(())
}

/// Makes a row.
fn row(
    name: &'static str,
    data: &Rc<Data>,
    options: &Options,
    sender: usize,
) -> Result<Box<dyn Row>> {
    let (calibration, folder) = (&data.calibration, options.folder.clone());
    Ok(match name {
        "convert" => Box::new(Convert::new(name, data, Peer::plain(calibration))?),
        "convert_native" => Box::new(Convert::new(name, data, Peer::of_this_cpu(calibration))?),
        "convert_veto_csr" => Box::new(ConvertVetoCsr::new(name, data, Peer::plain(calibration))?),
        "convert_veto_csr_native" => Box::new(ConvertVetoCsr::new(
            name,
            data,
            Peer::of_this_cpu(calibration),
        )?),
        "integrate_nosplit" => Box::new(Integrate::new(name, Split::No, data, folder)?),
        "integrate_full" => Box::new(Integrate::new(name, Split::Full, data, folder)?),
        "bitshuffle_lz4" => {
            let images = data.photons::<i16>()?;
            Box::new(Compress::new(name, bytes(&images), folder)?)
        }
        "bitshuffle_lz4_raw" => Box::new(Compress::new(name, bytes(&data.frames), folder)?),
        "receive_place" => Box::new(ReceivePlace::new(name, Link::Loopback, data, sender)?),
        "receive_place_af_packet" => Box::new(ReceivePlace::new(name, Link::Veth, data, sender)?),
        _ => bail!("no such row"),
    })
}

/// The bytes of images.
fn bytes<P: zerocopy::IntoBytes + zerocopy::Immutable>(images: &[Vec<P>]) -> Vec<Vec<u8>> {
    images
        .iter()
        .map(|image| image.as_bytes().to_vec())
        .collect()
}

fn facts(facts: &Facts) -> Value {
    json!({ "name": facts.name, "unit": facts.unit, "peer_name": facts.peer_name })
}

/// What a line asks for.
fn turn(rows: &mut [Box<dyn Row>], line: &str) -> Result<Value> {
    let (name, side) = line
        .split_once(' ')
        .context("a row and a side are wanted")?;
    let row = rows.iter_mut().find(|row| row.facts().name == name);
    let row = row.with_context(|| format!("no row {name}"))?;
    let turn = match side {
        "ours" => row.ours()?,
        "peer" => row.peer()?,
        "check" => {
            row.check()?;
            return Ok(json!({}));
        }
        _ => bail!("no side {side}"),
    };
    Ok(json!({ "rate": turn.rate, "busy": turn.busy }))
}

fn answer(answer: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{answer}")?;
    Ok(out.flush()?)
}
