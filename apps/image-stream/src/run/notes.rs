//! What the conversion notes of the pixels, so that the stages need not read the image again.

use pollux_images::convert::NoteConfig;
use pollux_images::stages::{CompressOptions, Method};
use pollux_images::veto::VetoConfig;
use serde::de::DeserializeOwned;

/// The notes that the stages take: the threshold of the first `veto`, and that of the first `compress`
/// with sparse rows. Wrong options are refused where the stages are made.
pub fn of_stages(stages: &[toml::Table]) -> NoteConfig {
    let veto = options::<VetoConfig>(stages, "veto").next();
    let compress = options::<CompressOptions>(stages, "compress");
    NoteConfig {
        count: veto.map(|veto| veto.min_photons),
        mark: compress
            .filter(|options| options.method == Method::Sparse)
            .find_map(|options| options.min_photons),
    }
}

/// The options of each stage of a name.
fn options<'a, T: DeserializeOwned>(
    stages: &'a [toml::Table],
    name: &'a str,
) -> impl Iterator<Item = T> + 'a {
    stages.iter().filter_map(move |stage| {
        let mut options = stage.clone();
        let found = options.remove("name")?;
        (found.as_str() == Some(name)).then_some(())?;
        options.try_into().ok()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn notes(stages: &str) -> NoteConfig {
        let config: toml::Table = format!("stage = [{stages}]").parse().unwrap();
        let stages: Vec<toml::Table> = config["stage"].clone().try_into().unwrap();
        of_stages(&stages)
    }

    #[test]
    fn thresholds_of_the_stages_are_noted() {
        let veto = r#"{ name = "veto", min_photons = 5, min_pixels = 9 }"#;
        let sparse = r#"{ name = "compress", method = "sparse", min_photons = 1.5 }"#;
        let both = format!("{veto}, {{ name = \"peaks\" }}, {sparse}");
        let config = |count, mark| NoteConfig { count, mark };
        assert_eq!(notes(&both), config(Some(5.0), Some(1.5)));
        assert_eq!(notes(veto), config(Some(5.0), None));
        assert_eq!(notes(sparse), config(None, Some(1.5)));
        let dense = r#"{ name = "compress" }, { name = "integrate" }"#;
        assert_eq!(notes(dense), NoteConfig::default());
        let wrong = r#"{ name = "veto", min_photons = "many" }, { min_photons = 1 }"#;
        assert_eq!(notes(wrong), NoteConfig::default());
    }
}
