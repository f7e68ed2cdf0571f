//! Options that programs and sub-commands share. Each struct is flattened into a command line.
//! A command with more to explain changes the help alone:
//! `#[command(mut_arg("ports", |arg| arg.help("...")))]`.

use std::path::PathBuf;
use std::time::Duration;

use crate::{
    Failure, Json, NamedFile, Output, Overwrite, Reports, expect_distinct, name_outputs, seconds,
};

/// Destination of the report: `--report`, `--json` and `--force`.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct ReportOptions {
    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Print the report as JSON instead of as text; with FILE, write it there, as --report does
    ///
    /// Give it after the ports, or as --json=FILE: the next argument is taken as the file.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = Json::STDOUT)]
    pub json: Option<Json>,

    /// Whether existing files are overwritten.
    #[command(flatten)]
    pub overwrite: Overwrite,
}

/// Files of `--report` and `--json FILE`, with resolved names.
#[derive(Clone, Debug, Default)]
pub struct ReportOutputs {
    prints_json: bool,
    files: [Option<Output>; 2],
}

impl ReportOptions {
    /// The options and their paths, for [`name_outputs`].
    #[must_use]
    pub fn files(&self) -> [(&'static str, Option<PathBuf>); 2] {
        [
            ("--report", self.report.clone()),
            ("--json", Json::file_of(self.json.as_ref())),
        ]
    }

    /// Whether the report is printed as JSON.
    #[must_use]
    pub fn prints_json(&self) -> bool {
        Json::is_printed(self.json.as_ref())
    }

    /// Resolves the file names for a command that writes no other files.
    ///
    /// # Errors
    /// As [`name_outputs`].
    pub fn outputs(&self) -> Result<ReportOutputs, Failure> {
        let [report, json] = &self.files();
        let files = [(report.0, &report.1), (json.0, &json.1)];
        let files = name_outputs(&files, None, self.overwrite).map_err(Failure::Usage)?;
        Ok(ReportOutputs {
            prints_json: self.prints_json(),
            files,
        })
    }
}

impl ReportOutputs {
    /// Refuses a file that is among others of the run, which it would overwrite.
    ///
    /// # Errors
    /// As [`expect_distinct`].
    pub fn expect_beside(&self, others: &[NamedFile]) -> Result<(), Failure> {
        let reports = self.files.iter().flatten().map(Output::file);
        let all: Vec<_> = others.iter().cloned().chain(reports).collect();
        expect_distinct(&all).map_err(Failure::Usage)
    }

    /// Prepares the files.
    ///
    /// # Errors
    /// As [`Reports::new`].
    pub fn ready(&self) -> anyhow::Result<Reports> {
        Reports::new(self.prints_json, self.files.iter().flatten())
    }
}

/// Time after which a run ends by itself.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
#[group(skip)]
pub struct DurationOption {
    /// End after this time: a number of seconds, or a time like 250ms or 5min
    #[arg(long, visible_alias = "seconds", value_name = "TIME", value_parser = seconds)]
    pub duration: Option<Duration>,
}

/// Ports of a command that takes several: positional, or each by `--port`.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct PortsOption {
    /// Ports
    #[arg(value_name = "PORT")]
    ports: Vec<String>,

    /// Another port; may be given several times
    #[arg(long = "port", id = "port", value_name = "SPEC")]
    more: Vec<String>,
}

impl PortsOption {
    /// The specs; those of `--port` last.
    #[must_use]
    pub fn specs(&self) -> Vec<String> {
        [&self.ports[..], &self.more].concat()
    }
}

/// Port of a command that takes one: positional, or by `--port`.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
pub struct PortOption {
    /// The port
    #[arg(value_name = "PORT", required_unless_present = "port")]
    place: Option<String>,

    /// The same, as an option
    #[arg(
        long = "port",
        id = "port",
        value_name = "SPEC",
        conflicts_with = "place"
    )]
    named: Option<String>,
}

impl PortOption {
    /// Its spec, if there is one.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        self.named.as_deref().or(self.place.as_deref())
    }

    /// The spec, for a command that requires one. Without one it is empty, which names no driver.
    #[must_use]
    pub fn spec(&self) -> &str {
        self.get().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct One {
        #[command(flatten)]
        port: PortOption,
        #[command(flatten)]
        report: ReportOptions,
    }

    #[derive(Parser)]
    struct Several {
        #[command(flatten)]
        ports: PortsOption,
    }

    fn one(args: &[&str]) -> Result<One, clap::Error> {
        One::try_parse_from([&["x"], args].concat())
    }

    #[test]
    fn a_port_is_given_in_front_or_as_an_option() {
        for args in [&["null"][..], &["--port", "null"], &["--port=null"]] {
            assert_eq!(one(args).unwrap().port.spec(), "null");
        }
        for args in [&[][..], &["null", "null"], &["null", "--port", "null"]] {
            assert!(one(args).is_err(), "{args:?}");
        }
        let args = ["x", "--port", "c", "a", "--port", "d", "b"];
        let several = Several::try_parse_from(args).unwrap();
        assert_eq!(several.ports.specs(), ["a", "b", "c", "d"]);
        assert!(
            Several::try_parse_from(["x"])
                .unwrap()
                .ports
                .specs()
                .is_empty()
        );
    }

    #[test]
    fn reports_go_to_each_of_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).display().to_string();
        let (report, json) = (file("r.json"), file("j.json"));
        let args = ["null", "--report", &report, "--json", &json];
        let options = one(&args).unwrap().report;
        assert!(!options.prints_json());
        let ready = options.outputs().unwrap().ready().unwrap();
        ready.write(&[1]).unwrap();
        assert_eq!(fs::read(&report).unwrap(), fs::read(&json).unwrap());
        // They were checked to exist.
        assert!(matches!(options.outputs(), Err(Failure::Usage(_))));
        assert!(one(&["null", "--json"]).unwrap().report.prints_json());
    }
}
