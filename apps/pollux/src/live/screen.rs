//! Interactive display of tables on a terminal.

use std::io;
use std::time::Duration;

use ratatui::backend::Backend;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Terminal};

use super::text::{self, Kind};
use super::view::Table;

/// Terminal in raw mode. Dropping it restores the terminal; `ratatui` restores it after a panic.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    sheet: Sheet,
}

/// Action requested by a key.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Action {
    Nothing,
    Redraw,
    End,
}

impl Screen {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminal: ratatui::try_init()?,
            sheet: Sheet::default(),
        })
    }

    pub(super) fn draw(&mut self, title: &str, tables: &[Table]) -> io::Result<()> {
        self.sheet.draw(&mut self.terminal, title, tables)
    }

    /// Waits for a key, at most for `time`.
    pub(super) fn next_action(&mut self, time: Duration) -> io::Result<Action> {
        if !event::poll(time)? {
            return Ok(Action::Nothing);
        }
        Ok(match event::read()? {
            Event::Key(key) => self.sheet.pressed(key),
            _ => Action::Redraw,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Scroll position of the tables, for terminals that are too small for them.
#[derive(Default)]
struct Sheet {
    down: u16,
    right: u16,
}

impl Sheet {
    /// Draws the fixed title, and the tables below it.
    fn draw<B: Backend>(
        &mut self,
        terminal: &mut Terminal<B>,
        title: &str,
        tables: &[Table],
    ) -> Result<(), B::Error> {
        let title = Line::styled(title, Style::new().add_modifier(Modifier::REVERSED));
        let lines = text::lines(tables).map(|(kind, line)| {
            let style = match kind {
                Kind::Title => Style::new().add_modifier(Modifier::BOLD),
                Kind::Header => Style::new().add_modifier(Modifier::DIM),
                Kind::Row => Style::new(),
                Kind::Alarm => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            };
            Line::styled(line, style)
        });
        let text: Text<'_> = lines.collect();
        terminal.draw(|frame| {
            let rows = Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]);
            let [top, rest] = rows.areas(frame.area());
            let beyond = |size: usize, room: u16| {
                u16::try_from(size.saturating_sub(room.into())).unwrap_or(u16::MAX)
            };
            self.down = self.down.min(beyond(text.height(), rest.height));
            self.right = self.right.min(beyond(text.width(), rest.width));
            frame.render_widget(title, top);
            let page = Paragraph::new(text).scroll((self.down, self.right));
            frame.render_widget(page, rest);
        })?;
        Ok(())
    }

    fn pressed(&mut self, key: KeyEvent) -> Action {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Action::End,
            KeyCode::Char('c') if control => return Action::End,
            KeyCode::Down => self.down = self.down.saturating_add(1),
            KeyCode::Up => self.down = self.down.saturating_sub(1),
            KeyCode::PageDown => self.down = self.down.saturating_add(20),
            KeyCode::PageUp => self.down = self.down.saturating_sub(20),
            KeyCode::Right => self.right = self.right.saturating_add(8),
            KeyCode::Left => self.right = self.right.saturating_sub(8),
            _ => return Action::Nothing,
        }
        Action::Redraw
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ratatui::backend::TestBackend;

    use super::super::openmetrics::Page;
    use super::super::view::View;
    use super::*;

    /// A trigger with one port of two queues, one of which loses frames, two streams, one of which
    /// has gaps, and a stage.
    fn page(second: u32) -> Page {
        let queues = (0..2).map(|queue| {
            let (came, lost) = (second * 1000, second * 10 * queue);
            let delivered = came - lost;
            let place = format!("place=\"eth1 queue {queue}\"");
            format!(
                "pollux_frames_from_wire_total{{{place}}} {came}\n\
                 pollux_frames_delivered_total{{{place}}} {delivered}\n\
                 pollux_frames_dropped_total{{{place},cause=\"ring-full\"}} {lost}\n\
                 pollux_frames_sent_total{{port=\"eth1\",queue=\"{queue}\"}} {second}\n\
                 pollux_stream_frames_total{{stream=\"{queue}\"}} {came}\n\
                 pollux_stream_sequence_faults_total{{stream=\"{queue}\",fault=\"gap\"}} {lost}\n"
            )
        });
        let stage = |name: &str, n| format!("pollux_stage_seconds_{name} {}\n", second * n);
        let rest = [
            stage("bucket{le=\"1e-06\",stage=\"rings\"}", 50),
            stage("bucket{le=\"0.0005\",stage=\"rings\"}", 99),
            stage("bucket{le=\"+Inf\",stage=\"rings\"}", 100),
            stage("count{stage=\"rings\"}", 100),
            "pollux_link_up{port=\"eth1\"} 1\n".into(),
        ];
        Page::parse(&queues.chain(rest).collect::<String>())
    }

    fn tables() -> Vec<Table> {
        let (before, now) = (page(1), page(2));
        let seconds = 1.0;
        View {
            before: &before,
            now: &now,
            seconds,
        }
        .tables()
    }

    /// Rows of a terminal of this size that show tables.
    fn drawn(sheet: &mut Sheet, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        sheet.draw(&mut terminal, " the title", &tables()).unwrap();
        let buffer = terminal.backend().buffer();
        let row = |y| {
            (0..width)
                .map(|x| buffer[(x, y)].symbol())
                .collect::<String>()
        };
        (0..height).map(|y| row(y).trim_end().into()).collect()
    }

    #[test]
    fn a_run_is_seen_by_queue_and_cause_and_stream_and_time() {
        let rows = drawn(&mut Sheet::default(), 100, 40);
        assert_eq!(rows[0], " the title");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        // First row of a table that begins so.
        let row = |title: &str, begin: &str| {
            let table = rows.iter().skip_while(|row| *row != title).skip(2);
            let rows = table.take_while(|row| row.starts_with(' '));
            let mut rows = rows
                .map(|row| words(row))
                .filter(|row| row.starts_with(begin));
            rows.next().unwrap_or_default()
        };
        assert_eq!(
            row("Frames", "eth1 queue 0"),
            "eth1 queue 0 1.00 k/s 0 bit/s 1.00 k/s 2000 0 /s 0"
        );
        assert_eq!(
            row("Frames", "eth1 queue 1"),
            "eth1 queue 1 1.00 k/s 0 bit/s 990 /s 1980 10 /s 20"
        );
        assert_eq!(
            row("Dropped, by cause", "eth1 queue 1"),
            "eth1 queue 1 ring-full 10 /s 20"
        );
        assert_eq!(row("Dropped, by cause", "eth1 queue 0"), "");
        assert_eq!(row("Sent", "eth1 queue 1"), "eth1 queue 1 1 /s 0 bit/s 2 0");
        assert_eq!(row("Streams", "1"), "1 1.00 k/s 0 bit/s 2000 20 gap");
        let times = "stage_seconds rings 1.0 us 500.0 us over over 1.0 us 500.0 us over over";
        assert_eq!(row("Times, at most (now, and in all)", "stage"), times);
        assert_eq!(row("Links", "eth1"), "eth1 up");
    }

    #[test]
    fn a_terminal_that_is_too_small_shows_what_it_can() {
        for width in [1, 5, 20, 80] {
            for height in [1, 2, 3, 10] {
                let rows = drawn(&mut Sheet::default(), width, height);
                assert!(" the title".starts_with(&rows[0]), "{width}x{height}");
                assert!(rows.get(1).is_none_or(|row| "Frames".starts_with(row)));
            }
        }
        // No tables at all.
        drawn(&mut Sheet::default(), 0, 0);
    }

    #[test]
    fn the_rest_is_scrolled_to_and_no_further() {
        let whole = drawn(&mut Sheet::default(), 200, 100);
        let last = whole.iter().rposition(|row| !row.is_empty()).unwrap();
        let mut sheet = Sheet::default();
        let press = |sheet: &mut Sheet, code, times| {
            for _ in 0..times {
                assert_eq!(sheet.pressed(KeyEvent::from(code)), Action::Redraw);
            }
        };
        press(&mut sheet, KeyCode::PageDown, 100);
        let rows = drawn(&mut sheet, 200, 6);
        assert_eq!(rows[0], whole[0]);
        assert_eq!(rows[1..], whole[last - 4..=last]);
        press(&mut sheet, KeyCode::Up, 1);
        assert_eq!(drawn(&mut sheet, 200, 6)[1..], whole[last - 5..last]);
        press(&mut sheet, KeyCode::PageUp, 100);
        press(&mut sheet, KeyCode::Right, 100);
        let rows = drawn(&mut sheet, 30, 100);
        let widest = whole.iter().map(String::len).max().unwrap();
        let end = whole.iter().position(|row| row.len() == widest).unwrap();
        assert_eq!(rows[end], whole[end][widest - 30..]);
        press(&mut sheet, KeyCode::Left, 100);
        assert_eq!(drawn(&mut sheet, 200, 100), whole);
    }

    #[test]
    fn keys_end_it() {
        let mut sheet = Sheet::default();
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        for key in [KeyCode::Char('q').into(), KeyCode::Esc.into(), control('c')] {
            assert_eq!(sheet.pressed(key), Action::End);
        }
        assert_eq!(sheet.pressed(KeyCode::Char('c').into()), Action::Nothing);
        assert_eq!(sheet.pressed(KeyCode::F(1).into()), Action::Nothing);
    }
}
