//! Tables as lines of text, for the screen and for files.

use super::view::Table;

/// Kind of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Title,
    Header,
    Row,
    /// A row that shows a loss.
    Alarm,
}

/// Lines of all tables, with aligned columns: the first left-aligned, all others right-aligned.
pub(super) fn lines(tables: &[Table]) -> impl Iterator<Item = (Kind, String)> {
    tables.iter().flat_map(table)
}

fn table(table: &Table) -> Vec<(Kind, String)> {
    let mut widths: Vec<_> = table
        .header
        .iter()
        .map(|cell| cell.chars().count())
        .collect();
    for row in &table.rows {
        for (width, cell) in widths.iter_mut().zip(&row.cells) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(&widths).enumerate();
        let cells = cells.map(|(k, (cell, width))| match k {
            0 => format!("  {cell:width$}"),
            _ => format!("  {cell:>width$}"),
        });
        cells.collect::<String>().trim_end().to_owned()
    };
    let mut lines = vec![
        (Kind::Title, table.title.to_owned()),
        (Kind::Header, line(&mut table.header.iter().copied())),
    ];
    lines.extend(table.rows.iter().map(|row| {
        let kind = if row.alarm { Kind::Alarm } else { Kind::Row };
        (kind, line(&mut row.cells.iter().map(String::as_str)))
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::super::view::Row;
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let row = |cells: [&str; 2], alarm| Row {
            cells: cells.map(String::from).into(),
            alarm,
        };
        let table = Table {
            title: "Sent",
            header: vec!["port", "frames"],
            rows: vec![row(["a", "1 k/s"], false), row(["longer", "0 /s"], true)],
        };
        let shown: Vec<_> = lines(&[table]).collect();
        assert_eq!(shown[1], (Kind::Header, "  port    frames".into()));
        assert_eq!(shown[2], (Kind::Row, "  a        1 k/s".into()));
        assert_eq!(shown[3], (Kind::Alarm, "  longer    0 /s".into()));
    }
}
