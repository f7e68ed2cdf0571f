//! What the help texts give as examples is taken by the programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::programs::program;
use crate::support::text;

/// The programs by name.
fn programs() -> [(&'static str, PathBuf); 3] {
    [
        ("pollux", env!("CARGO_BIN_EXE_pollux").into()),
        ("l0-trigger", program("l0-trigger")),
        ("pollux-emulator", program("pollux-emulator")),
    ]
}

/// Has a program read its arguments, and do nothing: every one is read before the help is shown.
fn read(program: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(args).arg("--help").output().unwrap()
}

#[track_caller]
fn help(program: &Path, args: &[&str]) -> String {
    let output = read(program, args);
    assert_eq!(output.status.code(), Some(0), "{args:?}");
    text(&output.stdout)
}

/// The names under `Commands:` in the help of the toolbox.
fn sub_commands(help: &str) -> Vec<&str> {
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let names = list.lines().take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|&name| name != "help").collect()
}

/// The arguments of a program in a line of a shell, which may have other commands and, behind two
/// spaces, words on what it is for.
fn commands<'a>(line: &'a str, name: &str) -> Vec<Vec<&'a str>> {
    let line = line.trim_start();
    let line = line.strip_prefix("Example: ").unwrap_or(line);
    let line = line.split_once("  ").map_or(line, |(command, _)| command);
    let words = line.split(" & ").flat_map(|part| part.split(" | "));
    let words = words.map(|part| part.split_whitespace().collect::<Vec<_>>());
    let mine = words.filter(|words| words.first() == Some(&name));
    mine.map(|words| words[1..].to_vec()).collect()
}

#[test]
fn examples_of_all_help_texts_are_read() {
    let programs = programs();
    let mut texts = Vec::new();
    for (name, path) in &programs {
        texts.push(help(path, &[]));
        if *name == "pollux" {
            let main = texts[texts.len() - 1].clone();
            let each = sub_commands(&main);
            texts.extend(each.iter().map(|command| help(path, &[*command])));
        }
    }
    let mut found = 0;
    for line in texts.iter().flat_map(|help| help.lines()) {
        let trimmed = line.trim_start();
        if trimmed == line && !line.starts_with("Example: ") {
            continue;
        }
        for (name, path) in &programs {
            for args in commands(line, name) {
                let output = read(path, &args);
                let message = text(&output.stderr);
                assert_eq!(output.status.code(), Some(0), "{trimmed}: {message}");
                found += 1;
            }
        }
    }
    // Of each program and of nearly all sub-commands.
    assert!(found >= 35, "only {found} examples were found");
}

/// Values that the help of an option gives.
#[test]
fn values_in_the_help_of_options_are_read() {
    let pollux = Path::new(env!("CARGO_BIN_EXE_pollux"));
    for (command, option, values) in [
        ("replay", "--delay", &["300us", "0.5-2ms", "500us-2ms"][..]),
        ("replay", "--speed", &["max"]),
        ("generate", "--rate", &["250k", "1.5Mpps", "10Gbps", "max"]),
        ("generate", "--size", &["64", "64,1500", "64-1500", "imix"]),
        ("capture", "--filter", &["udp.dst=9000,9500-9510"]),
        ("capture", "--file-size", &["500k", "100MB", "4GB"]),
        ("forward", "--idle", &["busy", "pause", "sleep"]),
    ] {
        let help = help(pollux, &[command]);
        let (_, rest) = help.split_once(&format!("{option} <")).unwrap();
        for value in values {
            assert!(rest.contains(value), "{command} {option}: no {value}");
            let output = read(pollux, &[command, option, value]);
            let message = text(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{value}: {message}");
        }
    }
}

#[test]
fn what_is_no_example_is_told_apart() {
    let pollux = |line| commands(line, "pollux");
    assert_eq!(
        pollux("  l0-trigger --metrics a & pollux live b  in words"),
        [["live", "b"]]
    );
    assert_eq!(
        pollux("Example: pollux ports --json"),
        [["ports", "--json"]]
    );
    assert!(pollux("  --quiet  as pollux does").is_empty());
    let output = read(
        Path::new(env!("CARGO_BIN_EXE_pollux")),
        &["replay", "--delay", "5 parsecs"],
    );
    assert_eq!(
        output.status.code(),
        Some(2),
        "options are read before help is shown"
    );
}
