//! A program with its own poll loops: one sends, one receives and accounts for every frame. `cargo
//! run --release -p pollux-pmd --example embed -- --cores 0,1` pins each to its core.
//!
//! The receiver waits for the frames of the sender, which the loopback returns. A port of a network
//! receives frames of others, for as long as the program likes: `docs/embedding.md` has one. Ten
//! seconds without a frame end the run.
use pollux_pmd::endpoint::{Classifier, Receiver};
use pollux_pmd::mempool::{Burst, Mempool, PoolConfig, time::Ns};
use pollux_pmd::net::{MacAddr, ParseOptions, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd::{Ledger, PortConfig, Registry, Timeout, TscClock, lcore, stream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const FRAMES: usize = 1 << 20;
    let cores = lcore::parse_cpu_list(&std::env::args().nth(2).unwrap_or_default());
    let pool = Mempool::new(PoolConfig::default())?;
    let port = Registry::builtin().open("loopback")?;
    let mut port = port.configure(PortConfig::new(pool.clone()))?.start()?;

    let stop = lcore::StopFlag::new();
    let stopped = stop.clone();

    // A loop owns all that it uses: its queue, its buffers, its counters.
    let (mut cache, mut burst) = (pool.cache(256)?, Burst::<32>::new());
    let sender = lcore::launch("sender", cores.first().copied(), move || {
        let (mac, ip) = (MacAddr([2; 6]), [10, 0, 0, 1].into());
        let boards = [2000, 2001, 9999].map(|port| {
            let socket = std::net::SocketAddrV4::new(ip, port);
            UdpTemplate::new(UdpEndpoint { mac, socket }, UdpEndpoint { mac, socket })
        });
        for _ in 0..FRAMES / 32 {
            cache.alloc_burst(&mut burst, 32);
            for (mbuf, board) in burst.iter_mut().zip(boards.iter().cycle()) {
                let _ = board.write(mbuf.append(UDP_HEADERS + 64).unwrap_or_default(), 64);
            }
            while !burst.is_empty() && !stopped.is_set() {
                port.tx[0].tx(&mut cache, &mut burst); // frames that do not fit remain in the burst
            }
            cache.free_burst(&mut burst); // of a run that has ended
        }
        port.tx
    })?;

    let streams = stream::DemuxBuilder::new().port(2000, stream::StreamId(0));
    let demux = streams.port(2001, stream::StreamId(1)).build()?;
    let mut receiver = Receiver::new(Classifier::new(ParseOptions::default()), demux, None);
    let (counts, mut ledger) = (receiver.streams(), Ledger::new());
    ledger.add("port", port.rx[0].tally());
    ledger.add("receiver", receiver.view());
    let (mut cache, mut burst, mut received) = (pool.cache(256)?, Burst::<32>::new(), 0);
    let receiver = lcore::launch("receiver", cores.get(1).copied(), move || {
        let (clock, patience) = (TscClock::get(), Ns(10_000_000_000));
        let mut silence = Timeout::new(&clock, patience);
        while received < FRAMES && !silence.is_over(&clock) {
            let frames = port.rx[0].rx(&mut cache, &mut burst);
            if frames > 0 {
                silence = Timeout::new(&clock, patience);
            }
            received += frames;
            burst.take_all(|mbuf| {
                // Frames of no stream are counted under their cause and freed.
                let frame = receiver.receive(mbuf, Ns(0), 0, &mut [], &mut cache);
                if let Some(frame) = frame {
                    receiver.tally().count_delivered(1);
                    cache.free(frame.mbuf);
                }
            });
        }
        (port.rx, received)
    })?;
    let received = receiver.join();
    stop.stop();
    let (rx, received) = received?;
    port.port.stop(rx, sender.join()?)?;
    if received < FRAMES {
        return Err(format!("{received} of {FRAMES} frames came back").into());
    }
    println!("{:?}", counts.counts().collect::<Vec<_>>());
    println!("{}", ledger.check()?); // an error if a frame is unaccounted for
    Ok(())
}
