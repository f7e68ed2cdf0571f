//! `farm sim`: simulates event builders.

mod help;
mod report;

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use pollux_app::{Failure, ReportOptions, user_message};
use pollux_farm::sim::{PolicyName, Progress, Scenario, Settings};

use self::report::Report;

/// Time between two lines about the progress.
const EVERY: Duration = Duration::from_secs(2);

/// Simulate an event builder
///
/// A simulation of discrete events in whole picoseconds. All that is random comes from the seed: one
/// seed gives one `hash` of all that happened, and all policies carry events of the same sizes. A
/// signal ends the simulation with the report so far.
///
/// Examples:
///   farm sim queue --set load=0.9
///   farm sim crossbar --policy slots --set sizes=exponential --set barrier=off
///   farm sim ethernet --policy none --seed 7 --json none.json
///   farm sim run3 --policy credits --set load=0.64
///   farm sim thesis --set rate=2.1e6
#[derive(clap::Args)]
#[command(verbatim_doc_comment, after_help = help::scenarios())]
pub struct Args {
    /// What is simulated
    #[arg(value_name = "SCENARIO", value_enum, hide_possible_values = true)]
    scenario: ScenarioOption,

    /// Who sends when [default: the first that the scenario has]
    #[arg(long, value_name = "POLICY", value_enum)]
    policy: Option<PolicyOption>,

    /// Parameter of the scenario; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Seed of all that is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    report: ReportOptions,
}

/// A scenario on the command line.
#[derive(Clone, Copy, Debug)]
struct ScenarioOption(Scenario);

impl ValueEnum for ScenarioOption {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: &[ScenarioOption] = &[
            ScenarioOption(Scenario::Queue),
            ScenarioOption(Scenario::Crossbar),
            ScenarioOption(Scenario::Ethernet),
            ScenarioOption(Scenario::Run3),
            ScenarioOption(Scenario::Thesis),
            ScenarioOption(Scenario::Prototype),
        ];
        ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.text()))
    }
}

/// A policy on the command line.
#[derive(Clone, Copy, Debug)]
struct PolicyOption(PolicyName);

impl ValueEnum for PolicyOption {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: &[PolicyOption] = &[
            PolicyOption(PolicyName::Ring),
            PolicyOption(PolicyName::Credits),
            PolicyOption(PolicyName::Slots),
            PolicyOption(PolicyName::None),
        ];
        ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(match self.0 {
            PolicyName::Ring => {
                "a message passes from source to source, which sends and passes it on"
            }
            PolicyName::Credits => "a node asks the sources for what it has room for",
            PolicyName::Slots => "in each slot every source sends to another node",
            PolicyName::None => "sources send as fast as they can",
        }))
    }
}

/// Runs the sub-command.
pub fn run(args: &Args) -> Result<(), Failure> {
    let stop = pollux_app::stop_on_signals().context("cannot handle signals")?;
    let scenario = args.scenario.0;
    let settings = Settings::read(scenario.keys(), args.set.iter().map(String::as_str));
    let settings = settings.context("--set").map_err(Failure::Usage)?;
    let policy = scenario.policy(args.policy.map(|policy| policy.0));
    let policy = policy.map_err(Failure::usage)?;
    let reports = args.report.outputs()?.ready()?;
    let began = Instant::now();
    let mut told = began;
    let mut watch = |progress: Progress| {
        if told.elapsed() >= EVERY {
            told = Instant::now();
            user_message(line(progress, began.elapsed()));
        }
        !stop.is_set()
    };
    let results = scenario.run(&settings, policy, args.seed, &mut watch);
    let results = results.map_err(Failure::usage)?;
    let report = Report::new(
        (scenario, args.seed),
        policy,
        &settings,
        &results,
        began.elapsed(),
    );
    reports.tell(&report, |out| report.print(out as &mut dyn Write))?;
    Ok(())
}

/// A line about the progress.
fn line(progress: Progress, since: Duration) -> String {
    let Progress {
        events,
        of,
        simulated,
    } = progress;
    format!(
        "{:.0} s: {events} of {of} events, {:.3} ms simulated",
        since.as_secs_f64(),
        simulated.ps() as f64 / 1e9
    )
}
