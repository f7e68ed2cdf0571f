//! Writes the manual pages and the shell completions of all programs, for `scripts/package`.

mod page;
mod prose;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Command, Parser};
use clap_complete::{Generator, Shell, generate};

use crate::page::Context;

/// Write the manual pages and the completions of all programs
///
/// Manual pages are in man1/ of the folder, completions in bash/, zsh/ and fish/, each under the name
/// by which the shell loads it.
#[derive(Parser)]
struct Cli {
    /// Folder to write to
    folder: PathBuf,

    /// Date of the pages: YYYY-MM-DD
    #[arg(long)]
    date: String,

    /// Folder in which the documentation is installed
    #[arg(long, value_name = "DIR")]
    documentation: String,
}

/// The shells, and the folder of each.
const SHELLS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash"),
    (Shell::Zsh, "zsh"),
    (Shell::Fish, "fish"),
];

/// The command lines of all programs.
fn programs() -> [Command; 5] {
    [
        farm::program::command(),
        image_stream::program::command(),
        l0_trigger::command(),
        pollux_toolbox::command(),
        pollux_emulator::program::command(),
    ]
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let names = programs().map(|program| program.get_name().to_owned());
    let context = Context {
        date: cli.date,
        documentation: cli.documentation,
        programs: names.to_vec(),
    };
    let pages = cli.folder.join("man1");
    fs::create_dir_all(&pages).with_context(|| pages.display().to_string())?;
    for mut program in programs() {
        for (name, text) in page::pages(program.clone(), &context)? {
            write(&pages.join(name), &text)?;
        }
        for (shell, folder) in SHELLS {
            complete(shell, &mut program, &cli.folder.join(folder))?;
        }
    }
    Ok(())
}

/// Writes the completions of a program for a shell.
fn complete(shell: Shell, program: &mut Command, folder: &Path) -> Result<()> {
    let name = program.get_name().to_owned();
    // bash-completion looks for the program's name.
    let file = match shell {
        Shell::Bash => name.clone(),
        shell => shell.file_name(&name),
    };
    let mut text = Vec::new();
    generate(shell, program, name, &mut text);
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    write(&folder.join(file), &text)
}

fn write(file: &Path, text: &[u8]) -> Result<()> {
    fs::write(file, text).with_context(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The sections of a page.
    fn headings(page: &[u8]) -> Vec<String> {
        let text = String::from_utf8(page.to_vec()).unwrap();
        let headings = text.lines().filter_map(|line| line.strip_prefix(".SH "));
        headings
            .map(|heading| heading.trim_matches('"').to_owned())
            .collect()
    }

    #[test]
    fn every_command_has_a_whole_page() {
        let context = Context {
            date: "2026-01-01".into(),
            documentation: "/usr/share/doc/pollux".into(),
            programs: vec!["farm".into(), "pollux".into()],
        };
        let mut names = Vec::new();
        for program in programs() {
            for (name, page) in page::pages(program, &context).unwrap() {
                let headings = headings(&page);
                for required in [
                    "NAME",
                    "SYNOPSIS",
                    "DESCRIPTION",
                    "OPTIONS",
                    "EXIT STATUS",
                    "SEE ALSO",
                ] {
                    let found = headings
                        .iter()
                        .filter(|heading| *heading == required)
                        .count();
                    assert_eq!(found, 1, "{name}: {required} of {headings:?}");
                }
                names.push(name);
            }
        }
        for expected in [
            "farm.1",
            "farm-run.1",
            "image-stream-convert.1",
            "l0-trigger.1",
            "pollux-capture.1",
            "pollux-rdma-bench.1",
            "pollux-emulator-images.1",
        ] {
            assert!(
                names.iter().any(|name| name == expected),
                "{expected} of {names:?}"
            );
        }
        // A command that only the program itself starts has none.
        assert!(!names.iter().any(|name| name == "farm-part.1"), "{names:?}");
    }
}
