//! Received frames to frames of streams.

use pollux_mempool::time::Ns;
use pollux_mempool::{Mbuf, PoolCache};

use super::classifier::{Classified, Classifier};
use super::neighbour::{Neighbour, Route};
use super::port_endpoint::PortEndpoint;
use crate::cause::Cause;
use crate::ledger::{Tally, TallyView};
use crate::net::Parsed;
use crate::stream::{Demux, StreamId, StreamView};

/// A datagram of a stream.
#[derive(Debug)]
pub struct StreamFrame {
    /// The frame.
    pub mbuf: Mbuf,
    /// The stream.
    pub stream: StreamId,
    /// Bytes from the start of the frame to the UDP payload.
    pub offset: u16,
    /// Bytes of UDP payload.
    pub len: u16,
}

/// Turns received frames into frames of streams. Frames that concern the host (ARP, ping, IGMP) go to
/// the [`PortEndpoint`] of their port; a [`Neighbour`] learns from all of them.
pub struct Receiver {
    classifier: Classifier,
    demux: Demux,
    neighbour: Option<Neighbour>,
}

impl Receiver {
    /// A receiver, with the host that answers are sent to, if there is one.
    #[must_use]
    pub fn new(classifier: Classifier, demux: Demux, neighbour: Option<Neighbour>) -> Self {
        Self {
            classifier,
            demux,
            neighbour,
        }
    }

    /// Takes a frame of the port with this index among `endpoints`. Returns the frame of a stream;
    /// any other frame is counted, under its cause if it is dropped, and freed. `now` is the time by
    /// which incomplete datagrams [expire](Self::expire).
    ///
    /// A frame that is returned must be counted by its consumer, in [`tally`](Self::tally) or in a
    /// tally of its own.
    #[inline]
    pub fn receive(
        &mut self,
        mbuf: Mbuf,
        now: Ns,
        port: usize,
        endpoints: &mut [PortEndpoint],
        cache: &mut PoolCache,
    ) -> Option<StreamFrame> {
        let classified = self.classifier.take(mbuf, now, port, cache)?;
        self.route(classified, now, port, endpoints, cache)
    }

    /// Takes a frame that was classified elsewhere, for example by another loop; otherwise as
    /// [`receive`](Self::receive).
    #[inline]
    pub fn route(
        &mut self,
        classified: Classified,
        now: Ns,
        port: usize,
        endpoints: &mut [PortEndpoint],
        cache: &mut PoolCache,
    ) -> Option<StreamFrame> {
        let Classified {
            mbuf,
            frames,
            parsed,
        } = classified;
        let ended = match parsed {
            Ok(Parsed::Udp(udp)) => {
                if let Some(neighbour) = &mut self.neighbour {
                    neighbour.observe_datagram(udp.addresses.src(), mbuf.data(), port);
                }
                match self.demux.route(&udp) {
                    Some(stream) => {
                        if frames > 1 {
                            // The consumer counts the datagram as one frame.
                            self.tally().count_delivered(frames - 1);
                        }
                        return Some(StreamFrame {
                            mbuf,
                            stream,
                            offset: udp.payload_offset,
                            len: udp.payload_len,
                        });
                    }
                    None => Err(Cause::DemuxMiss),
                }
            }
            Ok(Parsed::Arp | Parsed::IcmpEcho) => self.control(&mbuf, port, endpoints, cache),
            Ok(Parsed::Other) => match endpoints.get_mut(port) {
                Some(endpoint) => endpoint.observe(&mbuf, now),
                None => Err(Cause::NotForUs),
            },
            Err(cause) => Err(cause),
        };
        match ended {
            Err(cause) => self.tally().count_dropped(cause, frames),
            Ok(()) => self.tally().count_delivered(frames),
        }
        cache.free(mbuf);
        None
    }

    /// Learns from an ARP packet or a ping, and answers it if it is for this host.
    #[cold]
    fn control(
        &mut self,
        request: &Mbuf,
        port: usize,
        endpoints: &mut [PortEndpoint],
        cache: &mut PoolCache,
    ) -> Result<(), Cause> {
        let neighbour = self.neighbour.as_mut();
        let learned = neighbour.is_some_and(|host| host.observe_arp(request.data(), port));
        let endpoint = endpoints.get_mut(port);
        let replied = endpoint.is_some_and(|endpoint| endpoint.reply(request, cache));
        if replied || learned {
            Ok(())
        } else {
            Err(Cause::NotForUs)
        }
    }

    /// Requests the MAC address of the neighbour on every port, as long as it is unknown.
    pub fn request_neighbour(&self, endpoints: &mut [PortEndpoint], cache: &mut PoolCache) {
        let unresolved = self.neighbour.as_ref().and_then(Neighbour::unresolved);
        if let Some(ip) = unresolved {
            for endpoint in endpoints {
                endpoint.request(ip, cache);
            }
        }
    }

    /// The route to the neighbour, once after each change.
    #[inline]
    pub fn take_route(&mut self, endpoints: &[PortEndpoint]) -> Option<Route> {
        self.neighbour.as_mut()?.take_route(endpoints)
    }

    /// Whether there is a neighbour that answers are sent to.
    #[must_use]
    pub fn has_neighbour(&self) -> bool {
        self.neighbour.is_some()
    }

    /// Drops datagrams that were not complete in time.
    pub fn expire(&mut self, now: Ns, cache: &mut PoolCache) {
        self.classifier.expire(now, cache);
    }

    /// Drops all incomplete datagrams, at the end of the loop.
    pub fn finish(&mut self, cache: &mut PoolCache) {
        self.classifier.finish(cache);
    }

    /// The counts of the streams.
    #[must_use]
    pub fn streams(&self) -> StreamView {
        self.demux.view()
    }

    /// A view of the counter of frames that end here, for the ledger.
    #[must_use]
    pub fn view(&self) -> TallyView {
        self.classifier.view()
    }

    /// That counter; the consumer may count its frames there too.
    #[inline]
    pub fn tally(&mut self) -> &mut Tally {
        self.classifier.tally()
    }
}
