//! Writes the seed inputs of the targets into `corpus/`, with the project's own writer: `cargo run
//! --example farm_seeds` in this folder.

use std::fs;
use std::path::Path;

use pollux_farm::feeder::mockup::Mockup;
use pollux_farm::fragments::Outgoing;
use pollux_farm::message::{
    Ack, Alive, Assign, Decided, Decision, Feedback, Flow, Fragment, Member, Message, More,
    Request, Withdraw,
};
use pollux_farm::topology::{Descriptor, Feeders};
use pollux_farm::wire;

fn save(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    fs::create_dir_all(&folder).expect("the folder");
    fs::write(folder.join(name), bytes).expect("the file");
}

fn main() {
    let (run, mep, event, count) = (0, 0, 0, 2);
    let (descriptor, generation) = (Descriptor(1), 1);
    let flow = Flow {
        run,
        mep,
        event,
        count,
        descriptor,
        generation,
        attempt: 1,
        part: 0,
        loops: 0,
        hold: false,
        members: Feeders(0b111),
        pending: Feeders(0b110),
        decided: 0,
    };
    let store = Mockup::new(40, 0);
    let outgoing = Outgoing::new(1, &flow, &store, 256);
    let mut frame = vec![0; outgoing.frame_len()];
    outgoing.write(true, &mut frame).expect("room");
    save("farm", "fragment", &frame);
    save("farm", "flow", &wire::encode(&Message::Flow(flow)));

    let fragment = |feeder, step| {
        let fragment = outgoing.fragment();
        (2, step, Message::Fragment(Fragment { feeder, ..fragment }))
    };
    // Four triggers come with it.
    let feedback = |generation| {
        let column = 1;
        let feedback = Feedback {
            run,
            column,
            descriptor,
            generation,
            mep,
        };
        (0x84, 0, Message::Feedback(feedback))
    };
    let pending = Feeders::NONE;
    let more = More {
        run,
        descriptor,
        generation,
        mep,
    };
    let decision = Decision {
        run,
        mep,
        event,
        count,
        descriptor,
        generation,
        absent: 0,
        missing: Feeders::NONE,
        accepted: 1,
    };
    let decided = Decided {
        run,
        mep,
        bits: 1,
        before: 1,
    };
    let from = Member::Node(1);
    let withdraw = Withdraw {
        run,
        descriptor,
        generation,
    };
    let built: Vec<u8> = [
        feedback(0),
        (1, 0, Message::Flow(flow)),
        (0x41, 0, Message::Flow(flow)),
        fragment(0, 1),
        fragment(1, 1),
        fragment(2, 110),
        (0, 0, Message::Flow(Flow { pending, ..flow })),
        (0, 0, Message::More(more)),
        (3, 0, Message::Decision(decision)),
        (2, 0, Message::Ack(Ack { run, mep })),
        (0, 0, Message::Decided(decided)),
        (0, 255, Message::Alive(Alive { run, from })),
        (2, 0, Message::Withdraw(withdraw)),
        feedback(1),
    ]
    .into_iter()
    .flat_map(|(role, step, message)| [&[role, step][..], &wire::encode(&message)].concat())
    .collect();
    save("farm_roles", "built", &[&[0], &built[..]].concat());
    let members = Feeders(0b111);
    let assign = Assign {
        run,
        mep,
        event,
        count,
        descriptor,
        generation,
        attempt: 1,
        part: 0,
        loops: 1,
        members,
    };
    let request = Request {
        run,
        feeder: 1,
        mep,
        event,
        count,
        descriptor,
        generation,
        attempt: 1,
        part: 0,
        hold: true,
        members,
    };
    save("farm", "assign", &wire::encode(&Message::Assign(assign)));
    save("farm", "request", &wire::encode(&Message::Request(request)));
    let asked: Vec<u8> = [
        feedback(0),
        (0x22, 0, Message::Assign(assign)),
        (1, 0, Message::Request(request)),
        fragment(0, 1),
        fragment(1, 1),
        (
            2,
            110,
            Message::Assign(Assign {
                attempt: 2,
                ..assign
            }),
        ),
        fragment(2, 110),
        (3, 0, Message::Decision(decision)),
        (2, 0, Message::Ack(Ack { run, mep })),
    ]
    .into_iter()
    .flat_map(|(role, step, message)| [&[role, step][..], &wire::encode(&message)].concat())
    .collect();
    // The first byte selects the policy: 1 is credits.
    save("farm_roles", "asked", &[&[1], &asked[..]].concat());
    // All at a time behind the first one, of which one has no payload, and comes again; then those of the next
    // assignment of the buffer.
    let together = |feeder, step, generation| {
        let fragment = Fragment {
            feeder,
            generation,
            ..outgoing.fragment()
        };
        let role = if step == 0 { 0x12 } else { 0x1A };
        (role, step, Message::Fragment(fragment))
    };
    let at_once: Vec<u8> = [
        feedback(0),
        together(0, 2, 1),
        together(2, 0, 1),
        (2, 0, Message::Ack(Ack { run, mep })),
        together(0, 0, 2),
        fragment(1, 110),
    ]
    .into_iter()
    .flat_map(|(role, step, message)| [&[role, step][..], &wire::encode(&message)].concat())
    .collect();
    save("farm_roles", "together", &[&[0], &at_once[..]].concat());
    let looped: Vec<u8> = built
        .chunks(wire::HEADER + 2)
        .flat_map(|record| [&[record[0] | 0x20][..], &record[1..]].concat())
        .collect();
    save("farm_roles", "looped", &[&[0], &looped[..]].concat());
}
