//! Classification of received frames, with reassembly of fragments.

use pollux_mempool::time::Ns;
use pollux_mempool::{Mbuf, PoolCache};

use crate::cause::Cause;
use crate::ledger::{Tally, TallyView};
use crate::net::{ParseOptions, Parsed, Reassembler, ReassemblyConfig, ReassemblyError, classify};

/// A classified frame, or the datagram that several frames were reassembled to.
#[derive(Debug)]
pub struct Classified {
    /// The frame; a reassembled datagram is one frame.
    pub mbuf: Mbuf,
    /// Number of received frames that it consists of: so many are counted when it is delivered or
    /// dropped.
    pub frames: u64,
    /// Its contents, or the cause for which it must be dropped.
    pub parsed: Result<Parsed, Cause>,
}

/// Classifies frames and reassembles IPv4 fragments, with one table for each port.
///
/// With a table for each port, the result for one recording does not depend on how far another has
/// been read.
pub struct Classifier {
    options: ParseOptions,
    /// Empty where fragments are dropped.
    reassemblers: Vec<Reassembler>,
    /// Frames that end here, and those that the consumer counts here.
    tally: Tally,
}

impl Classifier {
    /// A classifier that drops fragments as [`Cause::IpFragment`].
    #[must_use]
    pub fn new(options: ParseOptions) -> Self {
        Self {
            options,
            reassemblers: Vec::new(),
            tally: Tally::new(),
        }
    }

    /// Reassembles the fragments of ports 0 to `ports`, each port within these bounds.
    ///
    /// # Errors
    /// Bounds that [`ReassemblyConfig::check`] refuses.
    pub fn with_reassembly(
        self,
        bounds: ReassemblyConfig,
        ports: usize,
    ) -> Result<Self, ReassemblyError> {
        let reassemblers = (0..ports).map(|_| Reassembler::new(bounds));
        Ok(Self {
            reassemblers: reassemblers.collect::<Result<_, _>>()?,
            ..self
        })
    }

    /// Whether fragments are reassembled.
    #[must_use]
    pub fn reassembles(&self) -> bool {
        !self.reassemblers.is_empty()
    }

    /// Classifies one frame without reassembly.
    ///
    /// # Errors
    /// The cause for which the frame must be dropped.
    #[inline]
    pub fn classify(&self, mbuf: &Mbuf) -> Result<Parsed, Cause> {
        classify(mbuf, &self.options)
    }

    /// Takes a frame of the port with this index; `None` while its datagram lacks fragments. `now` is
    /// the time by which incomplete datagrams [expire](Self::expire).
    #[inline]
    pub fn take(
        &mut self,
        mbuf: Mbuf,
        now: Ns,
        port: usize,
        cache: &mut PoolCache,
    ) -> Option<Classified> {
        let parsed = self.classify(&mbuf);
        if parsed == Err(Cause::IpFragment) && port < self.reassemblers.len() {
            return self.reassemble(mbuf, now, port, cache);
        }
        Some(Classified {
            mbuf,
            frames: 1,
            parsed,
        })
    }

    #[cold]
    fn reassemble(
        &mut self,
        mbuf: Mbuf,
        now: Ns,
        port: usize,
        cache: &mut PoolCache,
    ) -> Option<Classified> {
        let reassembler = self.reassemblers.get_mut(port)?;
        let whole = reassembler.take(mbuf, now, cache, &mut self.tally)?;
        Some(Classified {
            parsed: self.classify(&whole.mbuf),
            mbuf: whole.mbuf,
            frames: whole.frames,
        })
    }

    /// Drops datagrams whose time is over.
    pub fn expire(&mut self, now: Ns, cache: &mut PoolCache) {
        for reassembler in &mut self.reassemblers {
            reassembler.expire(now, cache, &mut self.tally);
        }
    }

    /// Drops all incomplete datagrams, at the end of the loop.
    pub fn finish(&mut self, cache: &mut PoolCache) {
        for reassembler in &mut self.reassemblers {
            reassembler.finish(cache, &mut self.tally);
        }
    }

    /// The counter in which the consumer counts each [`Classified`] as delivered or dropped.
    #[inline]
    pub fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// A view of that counter, for the ledger.
    #[must_use]
    pub fn view(&self) -> TallyView {
        self.tally.view()
    }
}
