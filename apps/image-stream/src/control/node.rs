//! The program as a node of the control link: a receiver.

use std::path::PathBuf;

use arc_swap::ArcSwapOption;
use pollux_images::Shape;
use pollux_images::control::{Arm, Capabilities, Counts, Node, Role};
use pollux_images::transfer::{DEFAULT_MEMORY, TransferConfig, TransferView, check_all};

use crate::config::{ImageConfig, Pixels};
use crate::run::{Counters, Plan};

/// Name and version of the program.
const PROGRAM: &str = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));

/// What the link shows of the program.
pub struct Receiver {
    /// The configuration at the start of the program. Each run reads it again.
    config: ImageConfig,
    /// Folder of the files of further transfers.
    folder: Option<PathBuf>,
    shape: Shape,
    pixel_bytes: usize,
    /// Counters of the run, or of the last one.
    pub counters: ArcSwapOption<Counters>,
}

impl Receiver {
    pub fn new(plan: &Plan<'_>) -> Self {
        Self {
            config: plan.config.clone(),
            folder: plan.options.transfers.clone(),
            shape: plan.layout.image(),
            pixel_bytes: match plan.pixels() {
                None => plan.layout.bits().div_ceil(8),
                Some(Pixels::I16) => 2,
                Some(Pixels::I32 | Pixels::F32) => 4,
            },
            counters: ArcSwapOption::empty(),
        }
    }

    fn check_transfers(&self, armed: &[TransferConfig]) -> anyhow::Result<()> {
        let mut config = self.config.clone();
        config.arm(armed, self.folder.as_deref())?;
        let all: Vec<_> = config
            .receiver
            .into_iter()
            .map(|one| one.transfer)
            .collect();
        check_all(&all, self.shape, self.pixel_bytes, DEFAULT_MEMORY)?;
        Ok(())
    }
}

impl Node for Receiver {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            pixel_bytes: Some(self.pixel_bytes),
            memory_bytes: Some(DEFAULT_MEMORY),
            ..Capabilities::new(Role::Receiver, PROGRAM, self.shape)
        }
    }

    fn check(&self, arm: &Arm) -> Result<(), String> {
        match arm {
            Arm::Transfers(armed) => {
                let checked = self.check_transfers(armed);
                checked.map_err(|error| format!("{error:#}"))
            }
            Arm::Source(_) => Err("this is a receiver: arm it with `transfers`".into()),
        }
    }

    /// Images come as the source sends them: the source alone is paused.
    fn pause(&self, _: bool) {}

    fn counts(&self) -> Counts {
        let counters = self.counters.load();
        counters.as_ref().map_or_else(Counts::default, |counters| {
            let images = &counters.images;
            Counts {
                frames: images.built.get() + images.dark.get(),
                transfers: counters
                    .receivers
                    .iter()
                    .map(TransferView::counts)
                    .collect(),
            }
        })
    }
}
