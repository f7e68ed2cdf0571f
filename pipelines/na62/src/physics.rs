//! Study of ring finding: events with a known truth, and what a finder makes of them.
//!
//! | module | what |
//! | --- | --- |
//! | [`model`] | events of a model of the RICH, made from seed and number |
//! | [`score`] | fitted rings compared with the true ones, by circle or by hits |
//! | [`study`] | efficiency, fakes, clones and resolution of a finder over events of many kinds |
//!
//! ```
//! use pollux_na62::physics::model::{ModelConfig, Rings};
//! use pollux_na62::physics::study::Study;
//! use pollux_na62::rich::find::FinderConfig;
//! use pollux_pmd::lcore::StopFlag;
//!
//! let study = Study { seed: 1, events: 160, finder: FinderConfig::default() };
//! let two_rings = ModelConfig { rings: Rings::Fixed(2), ..ModelConfig::default() };
//! let row = study.row(2, &two_rings, &StopFlag::new())?.expect("it was not stopped");
//! assert_eq!(row.events, 160);
//! assert!(row.efficiency.value() > Some(0.9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod model;
pub mod score;
pub mod study;
