//! Help texts as sections of a manual page.
//!
//! A help text has paragraphs, indented lines that stay as they are, and titles: `Examples:` before
//! indented lines, or `Exit status: ...` at the beginning of a paragraph.

use clap_mangen::roff::{Roff, roman};

/// Titles that begin the paragraph which is their section.
const INLINE: [&str; 3] = ["Environment", "Example", "Exit status"];

/// Longest title, in words.
const TITLE_WORDS: usize = 2;

/// Part of a section.
#[derive(Debug, PartialEq, Eq)]
enum Block {
    /// Lines to be filled.
    Paragraph(String),
    /// Lines as they are.
    Verbatim(String),
}

/// A section of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    /// Empty for the text before the first title.
    title: String,
    blocks: Vec<Block>,
}

impl Section {
    /// Title in capitals, as manual pages have it.
    pub(crate) fn heading(&self) -> String {
        // One example is in the section of several.
        let plural = if self.title == "Example" { "s" } else { "" };
        format!("{}{plural}", self.title).to_uppercase()
    }

    pub(crate) fn has_title(&self) -> bool {
        !self.title.is_empty()
    }

    /// Appends the text, without the heading.
    pub(crate) fn write(&self, page: &mut Roff) {
        for (number, block) in self.blocks.iter().enumerate() {
            match block {
                Block::Paragraph(text) => {
                    if number > 0 {
                        page.control("PP", []);
                    }
                    page.text([roman(text)]);
                }
                Block::Verbatim(lines) => {
                    page.control("PP", []).control("EX", []);
                    page.text([roman(lines)]).control("EE", []);
                }
            }
        }
    }

    /// Appends a block; verbatim lines of adjacent paragraphs become one.
    fn push(&mut self, block: Block) {
        match (self.blocks.last_mut(), block) {
            (Some(Block::Verbatim(before)), Block::Verbatim(lines)) => {
                before.push_str("\n\n");
                before.push_str(&lines);
            }
            (_, block) => self.blocks.push(block),
        }
    }
}

/// Divides a help text into sections; the first one has no title, and may be empty.
pub(crate) fn sections(text: &str) -> Vec<Section> {
    let mut sections = vec![Section::default()];
    for paragraph in text.split("\n\n").filter(|part| !part.trim().is_empty()) {
        let mut lines = paragraph.lines().peekable();
        while let Some(&line) = lines.peek() {
            let is_verbatim = line.starts_with(' ');
            let mut run = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with(' ') == is_verbatim) {
                run.push(line);
            }
            let block = if is_verbatim {
                Block::Verbatim(run.join("\n"))
            } else {
                let text = run.join(" ");
                let (title, text) = titled(&text);
                if let Some(title) = title {
                    let title = title.to_owned();
                    let blocks = Vec::new();
                    sections.push(Section { title, blocks });
                }
                if text.is_empty() {
                    continue;
                }
                Block::Paragraph(text.to_owned())
            };
            if let Some(section) = sections.last_mut() {
                section.push(block);
            }
        }
    }
    sections
}

/// Title that a paragraph begins with, and the rest of it.
fn titled(text: &str) -> (Option<&str>, &str) {
    if let Some((title, rest)) = text.split_once(": ")
        && INLINE.contains(&title)
    {
        return (Some(title), rest);
    }
    let Some(head) = text.strip_suffix(':') else {
        return (None, text);
    };
    let title = head.split([',', '(']).next().unwrap_or(head).trim_end();
    let is_title = title.split(' ').count() <= TITLE_WORDS
        && title.starts_with(char::is_uppercase)
        && title.chars().all(|c| c.is_alphabetic() || c == ' ');
    if !is_title {
        (None, text)
    } else if title == head {
        (Some(title), "")
    } else {
        // What else the line says is a sentence of the section.
        (Some(title), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(title: &str, blocks: Vec<Block>) -> Section {
        let title = title.to_owned();
        Section { title, blocks }
    }

    fn paragraph(text: &str) -> Block {
        Block::Paragraph(text.to_owned())
    }

    fn verbatim(text: &str) -> Block {
        Block::Verbatim(text.to_owned())
    }

    #[test]
    fn titles_begin_sections() {
        let text = "Write frames\nto files.\n\nExamples:\n  one\n    two\n\n  three\n\n\
                    Environment: RUST_LOG.\n\nExit status: 0 when it ended,\n1 otherwise.";
        let expected = [
            section("", vec![paragraph("Write frames to files.")]),
            section("Examples", vec![verbatim("  one\n    two\n\n  three")]),
            section("Environment", vec![paragraph("RUST_LOG.")]),
            section(
                "Exit status",
                vec![paragraph("0 when it ended, 1 otherwise.")],
            ),
        ];
        assert_eq!(sections(text), expected);
    }

    #[test]
    fn a_title_may_be_part_of_a_sentence() {
        let text = "Configuration (TOML; every key:\ndocs/configuration.md):\n  [trigger]\n\nIt is read once.";
        let whole = "Configuration (TOML; every key: docs/configuration.md):";
        let blocks = vec![
            paragraph(whole),
            verbatim("  [trigger]"),
            paragraph("It is read once."),
        ];
        assert_eq!(
            sections(text),
            [section("", vec![]), section("Configuration", blocks)]
        );
    }

    #[test]
    fn other_colons_are_no_titles() {
        for text in [
            "With three words here:",
            "lower case:",
            "Value: the first",
            "docs/ports.md:",
        ] {
            assert_eq!(
                sections(text),
                [section("", vec![paragraph(text)])],
                "{text}"
            );
        }
    }

    #[test]
    fn the_text_cannot_become_a_request_of_roff() {
        let mut page = Roff::new();
        for section in sections(".so /etc/passwd\n'br\n\n  .sp\n  \\fB") {
            section.write(&mut page);
        }
        let page = page.render();
        let requests = page
            .lines()
            .filter(|line| line.starts_with(['.', '\'']))
            .map(|line| line.split(' ').next().unwrap_or(line));
        let requests: Vec<_> = requests.collect();
        assert_eq!(requests, [".ie", ".el", ".PP", ".EX", ".EE"], "{page}");
        assert!(page.contains(r"\\fB") || page.contains(r"\(rsfB"), "{page}");
    }
}
