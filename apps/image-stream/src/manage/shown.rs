//! Text of nodes, as it may be shown: a terminal must not obey it.

use pollux_images::control::{Counts, Event, Message, Reply};

/// Whether a terminal, or a reader, would take a character for something else than itself: control
/// characters, and those of Unicode that are invisible or change the direction of writing.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text, with escapes in the place of characters that are not to be shown: `\u{1b}`.
pub(super) fn text(text: String) -> String {
    if !text.contains(is_hidden) {
        return text;
    }
    let shown = text.chars().map(|c| {
        if is_hidden(c) {
            c.escape_unicode().to_string()
        } else {
            c.into()
        }
    });
    shown.collect()
}

/// The message, with all of its text so.
pub(super) fn message(message: Message) -> Message {
    match message {
        Message::Reply(reply) => Message::Reply(match reply {
            Reply::Error { text } => Reply::Error {
                text: self::text(text),
            },
            Reply::Capabilities(mut capabilities) => {
                capabilities.program = text(capabilities.program);
                Reply::Capabilities(capabilities)
            }
            Reply::Status(mut status) => {
                names(&mut status.counts);
                Reply::Status(status)
            }
            Reply::Done { state } => Reply::Done { state },
        }),
        Message::Event(event) => Message::Event(match event {
            Event::Overrun { receiver, images } => Event::Overrun {
                receiver: receiver.map(text),
                images,
            },
            Event::Room { receiver } => Event::Room {
                receiver: receiver.map(text),
            },
            Event::Error { text } => Event::Error {
                text: self::text(text),
            },
            Event::Finished { mut counts } => {
                names(&mut counts);
                Event::Finished { counts }
            }
        }),
    }
}

fn names(counts: &mut Counts) {
    for transfer in &mut counts.transfers {
        transfer.name = text(std::mem::take(&mut transfer.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        let plain = "receiver `ä`: 3 µs, 日本";
        assert_eq!(text(plain.into()), plain);
        let red = "\u{1b}[31mred\r\n\u{9b}0m\u{202e}\u{7}";
        assert_eq!(
            text(red.into()),
            "\\u{1b}[31mred\\u{d}\\u{a}\\u{9b}0m\\u{202e}\\u{7}"
        );
    }

    #[test]
    fn all_text_of_a_message_is_escaped() {
        for line in [
            r#"{"version":1,"reply":{"error":{"text":"\u001b"}}}"#,
            r#"{"version":1,"reply":{"capabilities":{"role":"source","program":"\u001b","shape":{"rows":1,"columns":1}}}}"#,
            r#"{"version":1,"reply":{"status":{"state":"idle","counts":{"frames":0,"transfers":[{"name":"\u001b","region":[],"images":0,"bytes":0,"overrun":0}]}}}}"#,
            r#"{"version":1,"event":{"overrun":{"receiver":"\u001b","images":1}}}"#,
            r#"{"version":1,"event":{"room":{"receiver":"\u001b"}}}"#,
            r#"{"version":1,"event":{"error":{"text":"\u001b"}}}"#,
            r#"{"version":1,"event":{"finished":{"counts":{"frames":0,"transfers":[{"name":"\u001b","region":[],"images":0,"bytes":0,"overrun":0}]}}}}"#,
        ] {
            let parsed = Message::parse(line.as_bytes()).unwrap();
            let shown = format!("{:?}", message(parsed));
            // `Debug` escapes too: once more what is escaped already.
            assert!(shown.contains("\\\\u{1b}"), "{shown}");
        }
    }
}
