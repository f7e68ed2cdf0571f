//! Files that `images` writes: the truth, and the calibration of the modules.

use std::fs;
use std::path::Path;

use crate::images::synthesis::Synthesis;
use anyhow::Context as _;
use pollux_app::{NamedFile, Output, Overwrite, expect_distinct, name_outputs};

use super::cli::ImagesCli;

/// Output files of a run, with resolved names.
pub(super) struct Outputs {
    pub(super) truth: Option<Output>,
    pub(super) report: Option<Output>,
    /// Of `--json FILE`.
    pub(super) json: Option<Output>,
}

impl Outputs {
    pub(super) fn new(cli: &ImagesCli) -> anyhow::Result<Self> {
        let [report, json] = &cli.report.files();
        let files = [
            ("--truth", &cli.truth),
            (report.0, &report.1),
            (json.0, &json.1),
        ];
        let [truth, report, json] = name_outputs(&files, None, cli.report.overwrite)?;
        let raw = cli.raw.iter().map(|path| NamedFile::read("--raw", path));
        let port = cli.port.get().into_iter().flat_map(NamedFile::of_port);
        let outputs = [&truth, &report, &json].into_iter().flatten();
        let files = raw.chain(port).chain(outputs.map(Output::file));
        expect_distinct(&files.collect::<Vec<_>>())?;
        Ok(Self {
            truth,
            report,
            json,
        })
    }
}

/// Writes the truth about the images as JSON.
pub(super) fn write_truth(output: &Output, synthesis: &Synthesis) -> anyhow::Result<()> {
    let json = serde_json::to_string(&synthesis.truth()).with_context(|| output.name())?;
    output.write((json + "\n").as_bytes())
}

/// Writes the calibration of all modules: for module m the pedestals of each gain in ADC units
/// (`modM_pedeG0.bin`, ...) and the gains in ADC units per photon (`modM_gainG0.bin`, ...) as 32-bit
/// floats, little-endian, and the mask (`modM_mask.bin`) with one byte a pixel, 1 for a bad one. Pixels
/// are in the order of the rows.
pub(super) fn write_calibration(
    folder: &Path,
    overwrite: Overwrite,
    synthesis: &Synthesis,
) -> anyhow::Result<()> {
    let option = "--calibration-out";
    fs::create_dir_all(folder).with_context(|| format!("{option} {}", folder.display()))?;
    let write = |name: String, bytes: &[u8]| {
        Output::new(option, &folder.join(name), overwrite)?.write(bytes)
    };
    for module in 0..synthesis.layout().modules() {
        let response = synthesis.response(module);
        for gain in 0..response.readout().gains() {
            for (what, map) in [
                ("pede", response.pedestals(gain)),
                ("gain", response.gains(gain)),
            ] {
                let bytes: Vec<u8> = map.iter().flat_map(|value| value.to_le_bytes()).collect();
                write(format!("mod{module}_{what}G{gain}.bin"), &bytes)?;
            }
        }
        write(format!("mod{module}_mask.bin"), &response.mask())?;
    }
    Ok(())
}
