//! `pollux live`: shows the metrics of a running program as tables.

mod client;
mod openmetrics;
mod screen;
mod text;
mod view;

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use pollux_app::{DurationOption, Failure, print_with, seconds, stop_on_signals, user_message};
use pollux_pmd::lcore::StopFlag;

use self::client::Client;
use self::openmetrics::Page;
use self::screen::{Action, Screen};
use self::text::Kind;
use self::view::View;

/// Longest reaction time to a signal or a key.
const ROUND: Duration = Duration::from_millis(100);

/// Watch a running program: rates, drops by cause, streams, latencies
///
/// Reads the metrics of any program that was started with --metrics ADDRESS:PORT, here or on
/// another machine, without an effect on its loops. On a terminal the tables are updated in place:
/// arrows scroll, q ends. Elsewhere they are printed one after the other. If the program ends,
/// waits for its return.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    l0-trigger --metrics 127.0.0.1:9464 & pollux live 127.0.0.1:9464\n  \
    pollux live daq07:9464 --count 1        one look, as text\n\n\
    Exit status: 0 when it ended as asked, 1 when there is no such program or it has gone, 2 on a\n\
    wrong option or address.")]
pub(crate) struct Args {
    /// Address of the program's metrics: HOST:PORT, or a URL
    #[arg(value_name = "ADDRESS")]
    address: String,

    /// Interval: a number of seconds, or a time like 250ms
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = seconds)]
    interval: Duration,

    /// Read so many times, print each as text, and end
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    #[command(flatten)]
    duration: DurationOption,
}

/// End condition: a signal, or the end of the duration.
struct End {
    stop: StopFlag,
    at: Option<Instant>,
}

impl End {
    fn is_here(&self) -> bool {
        self.stop.is_set() || self.at.is_some_and(|at| Instant::now() >= at)
    }
}

/// The last two pages, and the times of their reading.
#[derive(Default)]
struct Watch {
    before: Page,
    now: Page,
    seconds: f64,
    at: Option<Instant>,
}

impl Watch {
    fn look(&mut self, client: &Client) -> Result<()> {
        let page = client.page()?;
        let at = Instant::now();
        self.seconds = self
            .at
            .map_or(1.0, |before| (at - before).as_secs_f64().max(1e-3));
        self.at = Some(at);
        self.before = std::mem::replace(&mut self.now, page);
        Ok(())
    }

    fn view(&self) -> View<'_> {
        View {
            before: &self.before,
            now: &self.now,
            seconds: self.seconds,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let end = End {
        stop: stop_on_signals().context("cannot handle signals")?,
        at: args.duration.duration.map(|span| Instant::now() + span),
    };
    let client = Client::new(&args.address).map_err(Failure::Usage)?;
    let mut watch = Watch::default();
    // A program that is missing from the start is an error; one that disappears later may return.
    watch.look(&client)?;
    match args.count {
        None if std::io::stdout().is_terminal() => on_screen(args, &client, watch, &end)?,
        count => as_text(args, &client, watch, &end, count)?,
    }
    Ok(())
}

/// Sleeps until a time; `false` if the program is to end before.
fn sleep_until(time: Instant, end: &End) -> bool {
    while !end.is_here() {
        match time.checked_duration_since(Instant::now()) {
            None => return true,
            Some(left) => std::thread::sleep(left.min(ROUND)),
        }
    }
    false
}

fn as_text(
    args: &Args,
    client: &Client,
    mut watch: Watch,
    end: &End,
    count: Option<u64>,
) -> Result<()> {
    let mut next = Instant::now();
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 {
        next += args.interval;
        if !sleep_until(next, end) {
            break;
        }
        match watch.look(client) {
            Ok(()) => {
                let heard = print_with(|out| {
                    for (kind, line) in text::lines(&watch.view().tables()) {
                        let mark = if kind == Kind::Alarm { "!" } else { "" };
                        writeln!(out, "{line}{mark}")?;
                    }
                    writeln!(out)
                })?;
                if !heard {
                    break;
                }
                left -= 1;
            }
            Err(error) if count.is_some() => return Err(error),
            Err(error) => user_message(format_args!("{error:#}")),
        }
    }
    Ok(())
}

fn on_screen(args: &Args, client: &Client, mut watch: Watch, end: &End) -> Result<()> {
    let mut screen = Screen::new().context("cannot draw on this terminal")?;
    let (mut next, mut away) = (Instant::now(), None);
    while !end.is_here() {
        if Instant::now() >= next {
            next = Instant::now() + args.interval;
            away = watch.look(client).err().map(|error| format!("{error:#}"));
        }
        let title = match &away {
            None => format!(" {}   q: end, arrows: scroll ", client.url()),
            Some(error) => format!(" {error}: waiting; below, what was last seen "),
        };
        screen
            .draw(&title, &watch.view().tables())
            .context("terminal")?;
        let until = next.saturating_duration_since(Instant::now()).min(ROUND);
        if screen.next_action(until).context("terminal")? == Action::End {
            break;
        }
    }
    Ok(())
}
