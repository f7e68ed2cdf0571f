//! Two programs at the ends of a cable between namespaces. Their rings hold what comes while a
//! busy machine lets the other end wait.

use pollux_netns::Cable;

use crate::support::Running;

#[test]
fn what_is_generated_is_verified() {
    let Some(cable) = Cable::bare(3000) else {
        return;
    };
    let verify = "verify af_packet:va,frame=4096 --ring 8192 --count 20000 --seed 5";
    let mut verify = Running::start(&cable.a, verify);
    verify.wait_for_ports();
    let generate = "generate af_packet:vb,frame=4096 --rate 30k --count 20000 --seed 5 \
                    --flows 100 --size 60-3014";
    let sent = Running::start(&cable.b, generate).report(0);
    let came = verify.report(0);
    assert_eq!(
        (&sent["sent"], &sent["unsent"]),
        (&20_000.into(), &0.into())
    );
    let counts = (&came["received"], &came["flows"], &came["reordered"]);
    assert_eq!(counts, (&20_000.into(), &100.into(), &0.into()));
    assert_eq!(came["bytes"], sent["sent_bytes"]);
    // Of the clock that both read.
    let latency = &came["latency_ns"];
    assert_eq!(latency["count"], 20_000);
    assert!(latency["p50"].as_u64().unwrap() > 100, "{latency}");
}

#[test]
fn frames_are_sent_back_by_who_swaps_them() {
    let Some(cable) = Cable::bare(1500) else {
        return;
    };
    let forward = "forward af_packet:va --mode 5tswap --retries 100000 --ring 8192";
    let mut forward = Running::start(&cable.a, forward);
    let verify = "verify af_packet:vb --count 5000 --ring 8192";
    let mut verify = Running::start(&cable.b, verify);
    forward.wait_for_ports();
    verify.wait_for_ports();
    let generate = "generate af_packet:vb --rate 20k --count 5000 --flows 10";
    let sent = Running::start(&cable.b, generate).report(0);
    let came = verify.report(0);
    forward.interrupt();
    let forwarded = forward.report(0);
    assert_eq!(sent["sent"], 5000);
    assert_eq!(
        (&came["received"], &came["corrupt"]),
        (&5000.into(), &0.into())
    );
    assert_eq!(forwarded["forwarded"], 5000);
    assert_eq!(forwarded["ports"][0]["tx_packets"], 5000);
}
