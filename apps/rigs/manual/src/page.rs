//! Manual pages: one for each program, and one for each of its sub-commands.

use std::io;

use anyhow::{Context as _, Result};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::prose::{self, Section};

/// What the pages have that no command line knows.
pub(crate) struct Context {
    /// Date of the pages, `YYYY-MM-DD`.
    pub(crate) date: String,
    /// Folder of the documentation, without `docs/`.
    pub(crate) documentation: String,
    /// Names of the pages of all programs.
    pub(crate) programs: Vec<String>,
}

/// Files of services (scripts/systemd), by the page that has them.
const FILES: [(&str, &str, &str); 5] = [
    (
        "l0-trigger",
        "/etc/pollux/NAME.toml",
        "Configuration of the service l0-trigger@NAME.",
    ),
    (
        "l0-trigger",
        "/etc/pollux/NAME.env",
        "Its other options, as OPTIONS=...",
    ),
    ("l0-trigger", "/var/lib/pollux/NAME", "Its reports."),
    (
        "pollux-capture",
        "/etc/pollux/capture-NAME.env",
        "Options of the service pollux-capture@NAME, as OPTIONS=...",
    ),
    (
        "pollux-capture",
        "/var/lib/pollux-capture/NAME",
        "Its files and reports.",
    ),
];

/// The order of sections in manual pages: others come first.
const LAST: [&str; 3] = ["EXIT STATUS", "ENVIRONMENT", "EXAMPLES"];

/// A page: the name of its file, and its content.
pub(crate) type Page = (String, Vec<u8>);

/// The pages of a program, of which each sub-command has one.
pub(crate) fn pages(mut program: Command, context: &Context) -> Result<Vec<Page>> {
    program = program.disable_help_subcommand(true);
    program.build();
    let mut made = Vec::new();
    append(&program, &[], context, &mut made)
        .with_context(|| format!("page of {}", program.get_name()))?;
    Ok(made)
}

/// Appends the pages of a command and of its sub-commands.
fn append(
    command: &Command,
    parents: &[&Command],
    context: &Context,
    made: &mut Vec<Page>,
) -> io::Result<()> {
    made.push(page(command, parents, context)?);
    let parents = [parents, &[command]].concat();
    for sub in command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
    {
        append(sub, &parents, context, made)?;
    }
    Ok(())
}

/// The sections of the texts before and after the options, with the description as the first.
fn sections(command: &Command) -> Vec<Section> {
    let before = command.get_long_about().or(command.get_about());
    let after = command.get_after_long_help().or(command.get_after_help());
    let texts = [before, after]
        .into_iter()
        .flatten()
        .map(ToString::to_string);
    prose::sections(&texts.collect::<Vec<_>>().join("\n\n"))
}

fn page(command: &Command, parents: &[&Command], context: &Context) -> io::Result<Page> {
    let mut sections = sections(command);
    // What a program says of its exit status holds for its sub-commands.
    if !sections.iter().any(|section| section.heading() == LAST[0]) {
        let of_parents = parents
            .iter()
            .rev()
            .flat_map(|parent| self::sections(parent));
        sections.extend(
            of_parents
                .filter(|section| section.heading() == LAST[0])
                .take(1),
        );
    }
    let rank = |section: &Section| LAST.iter().position(|last| *last == section.heading());
    sections.sort_by_key(|section| rank(section).map_or(0, |rank| rank + 1));

    let program = parents.first().unwrap_or(&command);
    let version = program.get_version().unwrap_or_default();
    let man = Man::new(shown(command))
        .date(&context.date)
        .source(format!("Pollux {version}"))
        .manual("Pollux");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    let (titled, untitled): (Vec<_>, Vec<_>) = sections.into_iter().partition(Section::has_title);
    let mut description = Roff::new();
    description.control("SH", ["DESCRIPTION"]);
    for section in untitled {
        section.write(&mut description);
    }
    description.to_writer(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut end = Roff::new();
    for section in titled {
        end.control("SH", [section.heading().as_str()]);
        section.write(&mut end);
    }
    files(&mut end, name(command));
    see_also(&mut end, command, parents, context);
    end.to_writer(&mut text)?;
    Ok((man.get_filename(), text))
}

/// Name of a command's page.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

/// The command as its page shows it: with the usage of its help, which is short.
fn shown(command: &Command) -> Command {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    command
        .override_usage(usage.trim_start_matches("Usage: ").to_owned())
        .about(about.split_whitespace().collect::<Vec<_>>().join(" "))
        .subcommand_help_heading("COMMANDS")
        .mut_args(|arg| match arg.get_help_heading() {
            // Of manual pages that is the section about files that the program uses.
            Some("Files") => arg.help_heading("Limits of files"),
            _ => arg,
        })
}

fn files(page: &mut Roff, name: &str) {
    let mut files = FILES.iter().filter(|(page, ..)| *page == name).peekable();
    if files.peek().is_none() {
        return;
    }
    page.control("SH", ["FILES"]);
    for (_, file, content) in files {
        page.control("TP", []);
        page.text([bold(*file)]).text([roman(*content)]);
    }
}

fn see_also(page: &mut Roff, command: &Command, parents: &[&Command], context: &Context) {
    // A sub-command's program and its own sub-commands; a program's peers.
    let visible = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    let mut others: Vec<_> = parents.iter().copied().chain(visible).map(name).collect();
    if parents.is_empty() {
        let programs = context.programs.iter().map(String::as_str);
        others.extend(programs.filter(|program| *program != name(command)));
    }
    page.control("SH", ["SEE ALSO"]);
    let mut line = Vec::new();
    for (number, other) in others.iter().enumerate() {
        let end = if number + 1 < others.len() {
            "(1), "
        } else {
            "(1)"
        };
        line.extend([bold(*other), roman(end)]);
    }
    page.text(line).control("PP", []);
    page.text([roman(format!(
        "Names that begin with docs/ are files below {}.",
        context.documentation
    ))]);
}
