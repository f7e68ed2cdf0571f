//! Tables on a terminal.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;

use super::text::{self, Kind};
use super::view::Table;

/// A terminal that is given back as it was, whatever happens: `ratatui` sees to a panic.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    scroll: u16,
}

/// What somebody at the keyboard wants.
#[derive(PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    Redraw,
    End,
}

impl Screen {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            terminal: ratatui::try_init()?,
            scroll: 0,
        })
    }

    pub(super) fn draw(&mut self, title: &str, tables: &[Table]) -> io::Result<()> {
        let mut lines = vec![Line::styled(
            title.to_owned(),
            Style::new().add_modifier(Modifier::REVERSED),
        )];
        lines.extend(text::lines(tables).map(|(kind, line)| {
            let style = match kind {
                Kind::Title => Style::new().add_modifier(Modifier::BOLD),
                Kind::Header => Style::new().add_modifier(Modifier::DIM),
                Kind::Row => Style::new(),
                Kind::Alarm => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            };
            Line::styled(line, style)
        }));
        let height = self.terminal.size()?.height;
        self.scroll = self.scroll.min((lines.len() as u16).saturating_sub(height));
        let page = Paragraph::new(Text::from(lines)).scroll((self.scroll, 0));
        self.terminal
            .draw(|frame| frame.render_widget(page, frame.area()))?;
        Ok(())
    }

    /// Waits for a key, no longer than `time`.
    pub(super) fn wish(&mut self, time: Duration) -> io::Result<Wish> {
        if !event::poll(time)? {
            return Ok(Wish::Nothing);
        }
        let Event::Key(key) = event::read()? else {
            return Ok(Wish::Redraw);
        };
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Ok(Wish::End),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Ok(Wish::End);
            }
            KeyCode::Down => self.scroll = self.scroll.saturating_add(1),
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(20),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(20),
            _ => return Ok(Wish::Nothing),
        }
        Ok(Wish::Redraw)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
