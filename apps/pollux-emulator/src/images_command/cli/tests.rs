#![allow(clippy::unwrap_used)]
use clap::{CommandFactory as _, Parser};

use super::*;

#[derive(Debug, Parser)]
struct Alone {
    #[command(flatten)]
    images: ImagesCli,
}

fn config(args: &[&str]) -> ImagesConfig {
    let args = [&["x", "--check"], args].concat();
    Alone::try_parse_from(args)
        .unwrap()
        .images
        .config()
        .unwrap()
}

#[test]
fn defaults_in_the_help_are_the_real_ones() {
    let help = Alone::command().render_long_help().to_string();
    let config = ImagesConfig::default();
    let (pattern, addresses) = (config.pattern, config.addresses);
    for default in [
        config.modules.to_string(),
        config.frames.to_string(),
        config.rate.to_string(),
        config.exposure_us.to_string(),
        config.stack.to_string(),
        pattern.photon_kev.to_string(),
        pattern.background.to_string(),
        pattern.peaks.to_string(),
        pattern.peak_photons.to_string(),
        pattern.peak_sigma.to_string(),
        pattern.ring_sigma.to_string(),
        pattern.bad_pixels.to_string(),
        addresses.src_port.to_string(),
        addresses.dst_port.to_string(),
        addresses.detector().socket.ip().to_string(),
        addresses.dst_ip.to_string(),
    ] {
        assert!(help.contains(&format!("[default: {default}")), "{default}");
    }
}

/// clap has a line break for it.
#[test]
fn the_placeholder_of_the_next_number_is_in_the_help() {
    let help = Alone::command().render_long_help().to_string();
    let placeholders = help.matches("{n}").count();
    assert_eq!(placeholders, 2, "{help}");
    assert!(help.contains("a packet is never sent") && !help.contains("a frame is"));
}

#[test]
fn options_are_the_configuration() {
    assert_eq!(config(&[]), ImagesConfig::default());
    let config = config(&[
        "--detector",
        "moench",
        "--modules",
        "3",
        "--interfaces",
        "2",
        "--rate",
        "1.5kHz",
        "--udp",
        "10.1.2.3:7000",
        "--late-by",
        "500us",
        "--dark-every",
        "2",
    ]);
    assert_eq!((config.detector, config.modules), (Detector::Moench, 3));
    assert_eq!((config.rate, config.dark_every), (1500.0, 2));
    assert_eq!(config.faults.late_us, 500);
    assert_eq!(config.endpoints(5).1.socket.to_string(), "10.1.2.3:7005");
}

#[test]
fn rates_have_units() {
    for (text, hertz) in [("100", 100.0), ("2k", 2000.0), ("0", 0.0), ("max", 0.0)] {
        assert_eq!(rate(text), Ok(hertz), "{text}");
    }
    for text in ["-1", "fast", "1M", "1 kHz"] {
        assert!(rate(text).unwrap_err().contains("(Hz)"), "{text}");
    }
}
