//! A program with poll loops of its own: one sends, one receives and accounts for every frame.
//! `cargo run --release -p pollux-pmd --example embed -- --cores 0,1` keeps each on its core.
use pollux_pmd::mempool::{Burst, Mempool, PoolConfig};
use pollux_pmd::net::{self, MacAddr, Parsed, UDP_HEADERS, UdpEndpoint, UdpTemplate};
use pollux_pmd::{Cause, Ledger, PortConfig, Registry, Tally, lcore, stream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const FRAMES: usize = 1 << 20;
    let cores = lcore::parse_cpu_list(&std::env::args().nth(2).unwrap_or_default());
    let pool = Mempool::new(PoolConfig::default())?;
    let port = Registry::builtin().open("loopback")?; // or a NIC: `af_packet:eth0`
    let mut port = port.configure(PortConfig::new(pool.clone()))?.start()?;

    // A loop owns all that it touches: its queue, its buffers, its counters.
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
            while !burst.is_empty() {
                port.tx[0].tx(&mut cache, &mut burst); // what finds no room stays in the burst
            }
        }
        port.tx
    })?;

    let streams = stream::DemuxBuilder::new().port(2000, stream::StreamId(0));
    let mut demux = streams.port(2001, stream::StreamId(1)).build()?;
    let (counts, mut tally, mut ledger) = (demux.view(), Tally::new(), Ledger::new());
    ledger.add("port", port.rx[0].tally());
    ledger.add("receiver", tally.view());
    let (mut cache, mut burst, mut received) = (pool.cache(256)?, Burst::<32>::new(), 0);
    let receiver = lcore::launch("receiver", cores.get(1).copied(), move || {
        while received < FRAMES {
            received += port.rx[0].rx(&mut cache, &mut burst);
            for mbuf in burst.iter() {
                match net::classify(mbuf, &net::ParseOptions::default()) {
                    Ok(Parsed::Udp(udp)) if demux.route(&udp).is_some() => tally.count_delivered(1),
                    Ok(Parsed::Udp(_)) => tally.count_dropped(Cause::DemuxMiss, 1),
                    Ok(_) => tally.count_dropped(Cause::NotForUs, 1),
                    Err(cause) => tally.count_dropped(cause, 1),
                }
            }
            cache.free_burst(&mut burst);
        }
        port.rx
    })?;
    port.port.stop(receiver.join()?, sender.join()?)?;
    println!("{:?}", counts.counts().collect::<Vec<_>>());
    println!("{}", ledger.check()?); // an error, where a frame is unaccounted for
    Ok(())
}
