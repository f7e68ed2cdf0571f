//! Text and JSON output of the findings.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use pollux_app::Reports;
use serde::Serialize;

use super::finding::{Finding, Level, Remedy};
use pollux_machine::cpu_list;

/// Findings of one topic.
pub(super) struct Topic {
    pub(super) name: &'static str,
    pub(super) findings: Vec<Finding>,
}

pub(super) struct Report {
    cores: String,
    topics: Vec<Topic>,
}

/// The contract of `--json`. A change that a reader could notice raises `schema`.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    cores: &'a str,
    levels: BTreeMap<&'static str, usize>,
    findings: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    topic: &'static str,
    #[serde(flatten)]
    finding: &'a Finding,
}

impl Report {
    /// `cores`: the CPUs that were checked as those of loops.
    pub(super) fn new(cores: &[usize], topics: Vec<Topic>) -> Self {
        Self {
            cores: cpu_list(cores),
            topics,
        }
    }

    fn count(&self, level: Level) -> usize {
        let all = self.topics.iter().flat_map(|topic| &topic.findings);
        all.filter(|finding| finding.level == level).count()
    }

    pub(super) fn bad(&self) -> usize {
        self.count(Level::Bad)
    }

    pub(super) fn tell(&self, json: Reports) -> anyhow::Result<()> {
        json.tell(&self.document(), |out| self.write_text(out))
    }

    fn document(&self) -> Document<'_> {
        let entry = |topic: &'static str| move |finding| Entry { topic, finding };
        let entries = self
            .topics
            .iter()
            .map(|topic| topic.findings.iter().map(entry(topic.name)));
        Document {
            schema: 1,
            cores: &self.cores,
            levels: Level::ALL
                .map(|level| (level.name(), self.count(level)))
                .into(),
            findings: entries.flatten().collect(),
        }
    }

    /// A finding of level ok takes one line; all others are printed with reason and remedy. A
    /// command that is the remedy of several findings is printed once.
    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut said = BTreeSet::new();
        for Topic { name, findings } in &self.topics {
            if findings.is_empty() {
                continue;
            }
            writeln!(out, "{name}")?;
            for finding in findings {
                let Finding {
                    check,
                    level,
                    found,
                    why,
                    ..
                } = finding;
                write!(out, "  {:<5} {check}", level.name())?;
                if let Some(subject) = &finding.subject {
                    write!(out, " ({subject})")?;
                }
                writeln!(out, ": {found}")?;
                if *level > Level::Ok {
                    writeln!(out, "        {why}")?;
                }
                match &finding.remedy {
                    Some(Remedy::Run(command)) if said.insert(command) => {
                        writeln!(out, "        run: {command}")?;
                    }
                    Some(Remedy::Run(_)) => {
                        writeln!(out, "        the command above mends it too")?;
                    }
                    Some(Remedy::Boot(parameters)) => {
                        writeln!(out, "        boot with: {parameters}")?;
                    }
                    Some(Remedy::Option(option)) => writeln!(out, "        use: {option}")?,
                    Some(Remedy::Look(command)) => writeln!(out, "        look: {command}")?,
                    None => {}
                }
            }
        }
        let counts = Level::ALL.map(|level| format!("{} {}", self.count(level), level.name()));
        writeln!(out, "{}", counts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::finding::Check;
    use super::*;

    #[test]
    fn a_command_that_mends_several_things_is_said_once() {
        const CHECK: Check = Check {
            name: "check",
            why: "It matters.",
        };
        let findings = [("one", "mend a"), ("two", "mend a"), ("three", "mend b")];
        let findings = findings.map(|(found, command)| CHECK.warn(found).run(command));
        let report = Report::new(
            &[],
            vec![Topic {
                name: "topic",
                findings: findings.into(),
            }],
        );
        let mut text = Vec::new();
        report.write_text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches("run: mend a").count(), 1, "{text}");
        assert_eq!(text.matches("the command above").count(), 1, "{text}");
        assert!(text.contains("run: mend b"), "{text}");
    }
}
