#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn a_written_configuration_is_read_back() {
    let mut config = EmulatorConfig::default();
    assert_eq!(
        EmulatorConfig::from_toml(&config.to_toml().unwrap()).unwrap(),
        config
    );
    assert_eq!(EmulatorConfig::from_toml("").unwrap(), config);
    config.faults.lost = 0.01;
    config.arrival = Arrival::Regular;
    config.spill.length_ms = 4800;
    config.addresses.src_mac = Some(MacAddr([2, 1, 2, 3, 4, 5]));
    assert_eq!(
        EmulatorConfig::from_toml(&config.to_toml().unwrap()).unwrap(),
        config
    );
}

#[test]
fn mistakes_are_named() {
    let error = |text: &str| EmulatorConfig::from_toml(text).unwrap_err().to_string();
    assert!(error("bords = 4").contains("unknown field `bords`"));
    assert!(error("[faults]\nlosst = 0.1").contains("unknown field `losst`"));
    assert!(error("seed = -1").contains("seed"));
    assert!(error("[addresses]\nsrc_mac = \"02:00\"").contains("not a MAC address"));
    assert_eq!(
        error("boards = 17"),
        "emulator configuration: boards = 17: must be 1 to 16"
    );
    assert!(error("boards = 0").contains("must be 1 to 16"));
    assert!(error("rate = 40000001").contains("0 (as fast as possible)"));
    assert!(error("events_per_frame = 0").contains("1 to 512"));
    assert!(error("arrival = \"random\"").contains("unknown variant `random`"));
    assert!(error("[spill]\nlength_ms = 100001").contains("spill.length_ms = 100001"));
    assert!(error("[spill]\ngap_ms = 5").contains("0 where spill.length_ms is"));
    assert!(error("[physics]\nrings = { poisson = nan }").contains("mean number of rings"));
    assert!(error("[physics]\nnoise = -0.1").contains("[physics]: photons must be"));
    assert!(error("[physics]\nnoize = 0.1").contains("unknown field `noize`"));
    assert!(error("[faults]\nlost = 1.5").contains("faults.lost = 1.5: must be a probability"));
    assert!(error("[faults]\nlost = 0.6\nlate = 0.6").contains("one fault at most"));
    assert!(error("[addresses]\ntrigger_port = 65535").contains("a port for every board"));
    assert!(error("[addresses]\ntrigger_ip = \"224.0.0.1\"").contains("one host"));
}

#[test]
fn the_spacing_is_the_nearest_to_the_rate() {
    let spacing = |rate| {
        EmulatorConfig {
            rate,
            ..EmulatorConfig::default()
        }
        .spacing()
    };
    assert_eq!(
        [100_000, 0, 40_000_000, 30_000_000, 1].map(spacing),
        [400, 400, 1, 1, 40_000_000]
    );
    assert_eq!(spacing(95_000), 421);
}

#[test]
fn every_board_has_ports_of_its_own() {
    let config = EmulatorConfig::default();
    let (src, dst) = config.endpoints(3);
    assert_eq!(src.socket.to_string(), "198.18.0.2:30003");
    assert_eq!(dst.socket.to_string(), "198.18.0.1:58916");
}
