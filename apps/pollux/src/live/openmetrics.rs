//! Parser for pages in the OpenMetrics text format (section "Text format" of its specification), as
//! far as Pollux and Prometheus exporters use it: samples with labels. Comments, time stamps and
//! exemplars are skipped.

use std::collections::BTreeMap;

/// Names and values of a sample's labels, ordered by name.
pub(super) type Labels = BTreeMap<String, String>;

/// A page: samples by name and labels.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Page(pub(super) BTreeMap<(String, Labels), f64>);

impl Page {
    /// Parses a page. Malformed lines are skipped, and so is the text behind the last line feed,
    /// since the page may have been truncated.
    pub(super) fn parse(text: &str) -> Self {
        let lines = text
            .split_inclusive('\n')
            .filter_map(|line| line.strip_suffix('\n'));
        Self(lines.filter_map(sample).collect())
    }

    /// Samples of one name, with their labels.
    pub(super) fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Labels, f64)> + 'a {
        let from = (name.to_owned(), Labels::new());
        self.0
            .range(from..)
            .take_while(move |((n, _), _)| n == name)
            .map(|((_, labels), value)| (labels, *value))
    }

    /// One sample.
    pub(super) fn get(&self, name: &str, labels: &Labels) -> Option<f64> {
        self.0.get(&(name.to_owned(), labels.clone())).copied()
    }
}

/// Parses `name{label="value",...} value` and an optional rest.
fn sample(line: &str) -> Option<((String, Labels), f64)> {
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Labels::new();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            if let Some(behind) = inside.strip_prefix('}') {
                rest = behind;
                break;
            }
            let (label, behind) = inside.split_once("=\"")?;
            let (value, behind) = quoted(behind)?;
            labels.insert(label.trim_start_matches(',').into(), value);
            inside = behind;
        }
    }
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(((name.into(), labels), value))
}

/// Parses a value up to its closing quote; returns it and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn samples_are_read_and_nonsense_is_left_out() {
        let page = Page::parse(
            "# HELP pollux_x Some help\n\
             pollux_x_total{place=\"a \\\"b\\\\\",cause=\"late\"} 3\n\
             pollux_y 1.5 1700000000\n\
             pollux_ones_total{} 1\n\
             pollux_h_bucket{le=\"+Inf\"} 2 # {id=\"9\"} 1.0\n\
             broken{a=\"b} 3\nbroken\n{} \nbroken{a} 1\n\
             pollux_cut_total 12",
        );
        let labels = |pairs: &[(&str, &str)]| -> Labels {
            pairs.iter().map(|&(k, v)| (k.into(), v.into())).collect()
        };
        let both = labels(&[("place", "a \"b\\"), ("cause", "late")]);
        assert_eq!(page.get("pollux_x_total", &both), Some(3.0));
        assert_eq!(page.get("pollux_y", &labels(&[])), Some(1.5));
        assert_eq!(page.of("pollux_ones_total").count(), 1);
        assert_eq!(page.of("pollux_h_bucket").count(), 1);
        assert_eq!(page.0.len(), 4, "{page:?}");
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "[a-z{}=\",\\\\# 0-9.\n+µ]{0,200}") {
            let _ = Page::parse(&text);
        }
    }
}
