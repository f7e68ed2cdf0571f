//! What all programs and sub-commands offer alike, as their help says it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::programs::program;
use crate::support::text;

/// The help of a program or sub-command.
struct Help {
    name: String,
    text: String,
}

impl Help {
    fn of(program: &Path, command: Option<&str>) -> Self {
        let words = command.unwrap_or_default().split_whitespace();
        let output = Command::new(program).args(words).arg("--help").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let stem = program.file_name().unwrap().to_str().unwrap();
        Self {
            name: command.map_or(stem.into(), |command| format!("{stem} {command}")),
            text: text(&output.stdout),
        }
    }

    /// Of each option and argument: how it is written, and its first paragraph.
    fn options(&self) -> Vec<(&str, String)> {
        let mut options: Vec<(&str, Vec<&str>)> = Vec::new();
        let (mut listed, mut is_summary) = (false, false);
        for line in self.text.lines() {
            if !line.starts_with(' ') && !line.is_empty() {
                // What follows the headings of options is at the end: examples and the like.
                let headings = ["Options:", "Arguments:", "Run:", "Files:", "Flows:"];
                let more = ["Payload:", "Faults:", "Addresses:"];
                listed = headings.contains(&line) || more.contains(&line);
            }
            let item = line.trim_start();
            let depth = line.len() - item.len();
            match () {
                () if !listed => {}
                () if depth < 10 && item.starts_with(['-', '<', '[']) => {
                    options.push((item, Vec::new()));
                    is_summary = true;
                }
                () if item.is_empty() => is_summary = false,
                () if is_summary => options.last_mut().unwrap().1.push(item),
                () => {}
            }
        }
        let joined = options.into_iter();
        joined.map(|(name, text)| (name, text.join(" "))).collect()
    }

    /// The long names of its options, and `PORT` for ports in front.
    fn names(&self) -> BTreeSet<String> {
        let options = self.options();
        let names = options.iter().filter_map(|(item, _)| {
            let port = ["[PORT]", "<PORT>"]
                .iter()
                .any(|port| item.starts_with(port));
            let long = item.split("--").nth(1);
            let long = long.and_then(|long| long.split([' ', '=', '[']).next());
            if port { Some("PORT") } else { long }
        });
        names.map(str::to_owned).collect()
    }
}

/// The names of all sub-commands of the toolbox, as its help lists them; of a group those in it.
pub(crate) fn subcommands() -> Vec<String> {
    let pollux = Path::new(env!("CARGO_BIN_EXE_pollux"));
    let names = listed(&Help::of(pollux, None));
    let names = names.into_iter().flat_map(|name| {
        let group = listed(&Help::of(pollux, Some(&name)));
        let within = group.iter().map(|command| format!("{name} {command}"));
        if group.is_empty() {
            vec![name]
        } else {
            within.collect()
        }
    });
    names.collect()
}

/// The sub-commands that a help lists.
fn listed(help: &Help) -> Vec<String> {
    let commands = help.text.lines().skip_while(|line| *line != "Commands:");
    let commands = commands.skip(1).take_while(|line| !line.is_empty());
    let names = commands.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|command| command != "help").collect()
}

/// Of the toolbox and each of its sub-commands, and of the other programs.
fn helps() -> Vec<Help> {
    let pollux = Path::new(env!("CARGO_BIN_EXE_pollux"));
    let (toolbox, commands) = (Help::of(pollux, None), subcommands());
    assert!(commands.len() >= 14, "{commands:?}");
    let mut helps: Vec<_> = commands
        .iter()
        .map(|command| Help::of(pollux, Some(command)))
        .collect();
    helps.push(toolbox);
    helps.extend(["l0-trigger", "pollux-emulator"].map(|name| Help::of(&program(name), None)));
    helps
}

/// A summary is no sentence: it has no full stop, wherever it is shown.
fn is_summary(text: &str) -> bool {
    !text.is_empty() && (!text.ends_with('.') || text.ends_with("..."))
}

#[test]
fn summaries_end_alike() {
    for help in helps() {
        let name = &help.name;
        let (about, _) = help.text.split_once("\n\n").unwrap();
        assert!(is_summary(about), "{name}: {about}");
        let options = help.options();
        assert!(options.len() > 2, "{name}: {options:?}");
        for (option, summary) in options {
            assert!(is_summary(&summary), "{name} {option}: {summary}");
        }
    }
    let toolbox = Help::of(Path::new(env!("CARGO_BIN_EXE_pollux")), None);
    let listed = toolbox.text.lines().skip_while(|line| *line != "Commands:");
    for line in listed.skip(1).take_while(|line| !line.is_empty()) {
        assert!(is_summary(line), "{line}");
    }
}

#[test]
fn helps_end_with_the_exit_status() {
    for Help { name, text } in helps() {
        let end = text.trim_end().rsplit("\n\n").next().unwrap();
        assert!(end.starts_with("Exit status: 0"), "{name} ends: {end}");
        assert!(end.ends_with('.'), "{name} ends: {end}");
        for status in ["1", "2"] {
            assert!(end.contains(status), "{name}: no {status} in {end}");
        }
    }
}

/// The options that mean the same everywhere, and who has them.
#[test]
fn one_set_of_options() {
    let run = "PORT port cores duration report json force metrics quiet";
    let result = "report json force";
    let expected = [
        ("pollux bench", format!("{run} queues")),
        ("pollux capture", format!("{run} queues")),
        ("pollux forward", format!("{run} queues")),
        ("pollux generate", format!("{run} queues")),
        ("pollux streams", format!("{run} queues")),
        ("pollux switch", format!("{run} queues")),
        ("pollux verify", format!("{run} queues")),
        // A recording is one sequence, sent by one queue.
        ("pollux replay", run.into()),
        ("pollux doctor", format!("{result} cores")),
        ("pollux physics", result.into()),
        ("pollux ports", result.into()),
        // A trial for each row.
        ("pollux rdma bench", format!("PORT cores {result}")),
        // One lcore, until the conversation is over.
        ("pollux rdma ping", format!("PORT port {result}")),
        ("pollux rdma play", format!("PORT port {result}")),
        ("pollux rdma serve", format!("PORT port {result}")),
        // Lines of JSON are no report.
        ("pollux events", "json force".into()),
        // Endless, and what it shows is on a page for machines already.
        ("pollux live", "duration".into()),
        // Here, --force is for a device in use.
        ("pollux bind", "force".into()),
        ("pollux unbind", String::new()),
        ("pollux", String::new()),
        ("l0-trigger", format!("{run} queues")),
        ("pollux-emulator", format!("{run} queues")),
    ];
    let helps = helps();
    assert_eq!(helps.len(), expected.len());
    let shared: BTreeSet<_> = format!("{run} queues")
        .split(' ')
        .map(String::from)
        .collect();
    for (name, options) in expected {
        let help = helps.iter().find(|help| help.name == name).unwrap();
        let found: BTreeSet<_> = help.names().intersection(&shared).cloned().collect();
        let expected = options.split_whitespace().map(String::from).collect();
        assert_eq!(found, expected, "{name}");
    }
}
