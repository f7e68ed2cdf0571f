//! Engine of the switch.

use std::sync::Arc;

use pollux_pmd::mempool::time::Tsc;
use pollux_pmd::mempool::{Burst, Mbuf, MbufFlags, PoolCache};
use pollux_pmd::{Cause, Clock, Ledger, RxQueue, Tally, TscClock, TxQueue};

use crate::addresses::{AddressTable, Learned};
use crate::config::{SwitchConfig, SwitchError};
use crate::counts::{Decisions, SwitchView};
use crate::filter::{Addresses, Causes, is_group, is_reserved};
use crate::output::Output;

/// Frames received at once from one queue.
const BURST: usize = 32;

/// Idle iterations between two calls of a driver that may hold frames: many, so that the calls cost
/// nothing.
const KICK: u32 = 1024;

/// Queues of a port of the switch.
pub struct SwitchPort {
    /// Name in the ledger and the report.
    pub name: String,
    /// Receive queues: all that the port has, or none for a port that only sends.
    pub rx: Vec<RxQueue>,
    /// Transmit queue; `None` for a port that only receives.
    pub tx: Option<TxQueue>,
}

/// A learning switch between ports, for one poll loop.
///
/// [`poll`](Self::poll) is an iteration of the loop; it neither allocates nor enters the kernel,
/// unless a port's driver does. Inputs are polled in turn, beginning with another one in each
/// iteration, so that none is preferred where an output's buffer is full.
///
/// ```no_run
/// # use pollux_pmd::mempool::PoolCache;
/// # use pollux_pmd::Ledger;
/// # use pollux_switch::{Switch, SwitchConfig, SwitchPort};
/// # fn f(ports: Vec<SwitchPort>, mut cache: PoolCache, stop: impl Fn() -> bool)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// let mut switch = Switch::new(ports, &SwitchConfig::default())?;
/// let (mut ledger, view) = (Ledger::new(), switch.view());
/// switch.add_to(&mut ledger);
/// while !stop() {
///     switch.poll(&mut cache);
/// }
/// while !switch.is_empty() {
///     switch.send(&mut cache);
/// }
/// let ports = switch.finish(&mut cache);
/// println!("{}", view.report());
/// # Ok(())
/// # }
/// ```
pub struct Switch<C: Clock = TscClock> {
    names: Vec<String>,
    inputs: Vec<Vec<RxQueue>>,
    outputs: Vec<Option<Output>>,
    addresses: AddressTable,
    causes: Causes,
    tally: Tally,
    decisions: Arc<Decisions>,
    /// Frames that may still be received.
    budget: u64,
    /// Input that is polled first.
    first: usize,
    idle: u32,
    clock: C,
}

impl Switch {
    /// A switch on the clock of the process. All memory is allocated here.
    ///
    /// # Errors
    /// A number of the configuration out of its range, no port, or too many.
    pub fn new(ports: Vec<SwitchPort>, config: &SwitchConfig) -> Result<Self, SwitchError> {
        Self::with_clock(ports, config, TscClock::get())
    }
}

impl<C: Clock> Switch<C> {
    /// As [`Switch::new`], on another clock.
    ///
    /// # Errors
    /// As those of [`Switch::new`].
    pub fn with_clock(
        ports: Vec<SwitchPort>,
        config: &SwitchConfig,
        clock: C,
    ) -> Result<Self, SwitchError> {
        config.check()?;
        if ports.is_empty() || ports.len() > 1024 {
            return Err(SwitchError::Ports(ports.len()));
        }
        let (mut names, mut inputs, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for port in ports {
            names.push(port.name);
            inputs.push(port.rx);
            outputs.push(port.tx.map(|tx| Output::new(tx, config, &clock)));
        }
        Ok(Self {
            names,
            inputs,
            outputs,
            addresses: AddressTable::new(config.addresses, clock.to_cycles(config.age)),
            causes: Causes::declare()?,
            tally: Tally::new(),
            decisions: Arc::default(),
            budget: config.count.unwrap_or(u64::MAX),
            first: 0,
            idle: 0,
            clock,
        })
    }

    /// Adds the tallies of the switch to the ledger of the run. Those of the receive queues are added
    /// by their owner.
    pub fn add_to(&self, ledger: &mut Ledger) {
        ledger.add("switch", self.tally.view());
        for (name, output) in self.names.iter().zip(&self.outputs) {
            if let Some(output) = output {
                ledger.add(format!("switch output {name}"), output.tally());
            }
        }
    }

    /// Reader of the counters.
    #[must_use]
    pub fn view(&self) -> SwitchView {
        let outputs = self.names.iter().zip(&self.outputs);
        let outputs = outputs.filter_map(|(name, output)| {
            let counts = Arc::clone(&output.as_ref()?.counts);
            Some((name.clone(), counts))
        });
        SwitchView {
            decisions: Arc::clone(&self.decisions),
            outputs: outputs.collect(),
        }
    }

    /// One iteration: sends what is due, receives up to 32 frames from each queue, and sends what is
    /// due at once. Returns the number of frames received and sent.
    #[inline]
    pub fn poll(&mut self, cache: &mut PoolCache) -> usize {
        let now = self.clock.now();
        // Before the reception, so that frames that have left make room.
        let mut moved = self.send_at(now, cache);
        let inputs = self.inputs.len();
        for n in 0..inputs {
            moved += self.receive((self.first + n) % inputs, now, cache);
        }
        self.first = (self.first + 1) % inputs;
        moved += self.send_at(now, cache);
        if moved > 0 {
            self.idle = 0;
        } else {
            self.idle = self.idle.wrapping_add(1);
            if self.idle.is_multiple_of(KICK) {
                for output in self.outputs.iter_mut().flatten() {
                    output.kick(cache);
                }
            }
        }
        moved
    }

    /// Sends what is due, and receives nothing: for the end of a run. Returns the number of frames
    /// sent.
    pub fn send(&mut self, cache: &mut PoolCache) -> usize {
        let now = self.clock.now();
        self.send_at(now, cache)
    }

    /// Whether no frame waits at an output.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.outputs.iter().flatten().all(Output::is_empty)
    }

    /// Whether no frame can come any more: as many have been received as configured, or all receive
    /// queues have ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let mut queues = self.inputs.iter().flatten();
        self.budget == 0 || queues.all(|queue| queue.state().is_final())
    }

    /// Receive queues, for the housekeeping of the loop.
    pub fn inputs(&mut self) -> impl Iterator<Item = &mut RxQueue> {
        self.inputs.iter_mut().flatten()
    }

    /// Number of known addresses. Looks at the whole table.
    #[must_use]
    pub fn known_addresses(&self) -> usize {
        self.addresses.len(self.clock.now())
    }

    /// Ends the switch: frames that still wait are aborted. Returns the queues of the ports.
    #[must_use]
    pub fn finish(self, cache: &mut PoolCache) -> Vec<SwitchPort> {
        let ports = self.names.into_iter().zip(self.inputs).zip(self.outputs);
        let ports = ports.map(|((name, rx), output)| SwitchPort {
            name,
            rx,
            tx: output.map(|output| output.finish(cache)),
        });
        ports.collect()
    }

    fn send_at(&mut self, now: Tsc, cache: &mut PoolCache) -> usize {
        let outputs = self.outputs.iter_mut().flatten();
        outputs.map(|output| output.send(now, cache)).sum()
    }

    /// Receives from one port; returns the number of frames.
    fn receive(&mut self, port: usize, now: Tsc, cache: &mut PoolCache) -> usize {
        let mut received = 0;
        for queue in 0..self.inputs[port].len() {
            if self.budget == 0 {
                break;
            }
            let mut burst = Burst::<BURST>::new();
            let limit = usize::try_from(self.budget).unwrap_or(BURST);
            let n = self.inputs[port][queue].rx_up_to(cache, &mut burst, limit);
            self.budget -= n as u64;
            received += n;
            burst.take_all(|frame| self.switch(frame, port, now, cache));
        }
        received
    }

    /// Decides where a frame goes.
    fn switch(&mut self, frame: Mbuf, input: usize, now: Tsc, cache: &mut PoolCache) {
        match self.decide(&frame, input, now) {
            Err(cause) => {
                self.tally.count_dropped(cause, 1);
                cache.free(frame);
            }
            Ok(Some(port)) => self.forward(frame, port, now, cache),
            Ok(None) => self.flood(frame, input, now, cache),
        }
    }

    /// The port to which a frame goes, `None` for all but its input.
    fn decide(&mut self, frame: &Mbuf, input: usize, now: Tsc) -> Result<Option<usize>, Cause> {
        let Some(Addresses { src, dst }) = Addresses::of(frame) else {
            return Err(Cause::Malformed);
        };
        if !src.is_unicast() {
            return Err(self.causes.bad_source);
        }
        match self.addresses.learn(src, input as u16, now) {
            Learned::Known => {}
            Learned::New => self.decisions.learned.add(1),
            Learned::Moved => self.decisions.moved.add(1),
            Learned::Full => self.decisions.table_full.add(1),
        }
        if is_reserved(dst) {
            return Err(self.causes.reserved);
        }
        if is_group(dst) {
            return Ok(None);
        }
        match self.addresses.find(dst, now).map(usize::from) {
            Some(port) if port == input => Err(self.causes.same_port),
            port => Ok(port),
        }
    }

    /// Queues a frame at one output.
    fn forward(&mut self, frame: Mbuf, port: usize, now: Tsc, cache: &mut PoolCache) {
        let Some(output) = self.outputs.get_mut(port).and_then(Option::as_mut) else {
            self.tally.count_dropped(self.causes.no_output, 1);
            cache.free(frame);
            return;
        };
        self.decisions.unicast.add(1);
        if output.admit(&frame) {
            output.push(frame, false, now);
        } else {
            output.count_dropped(self.causes.output_full);
            cache.free(frame);
        }
    }

    /// Queues a frame at all outputs but that of its input. The frame itself goes to the last one with
    /// room, copies to the others.
    fn flood(&mut self, frame: Mbuf, input: usize, now: Tsc, cache: &mut PoolCache) {
        let (mut last, mut is_offered) = (None, false);
        for port in (0..self.outputs.len()).filter(|&port| port != input) {
            let Some(output) = &mut self.outputs[port] else {
                continue;
            };
            is_offered = true;
            if !output.admit(&frame) {
                continue;
            }
            if let Some(before) = last.replace(port) {
                self.copy_to(&frame, before, now, cache);
            }
        }
        if is_offered {
            self.decisions.flooded.add(1);
        }
        if let Some(output) = last.and_then(|port| self.outputs[port].as_mut()) {
            return output.push(frame, false, now);
        }
        let cause = if is_offered {
            self.causes.output_full
        } else {
            self.causes.no_output
        };
        self.tally.count_dropped(cause, 1);
        cache.free(frame);
    }

    /// Queues a copy of a frame at an output that has admitted it.
    fn copy_to(&mut self, frame: &Mbuf, port: usize, now: Tsc, cache: &mut PoolCache) {
        let Some(output) = &mut self.outputs[port] else {
            return;
        };
        match copy(frame, cache) {
            Some(copy) => {
                self.decisions.copies.add(1);
                output.push(copy, true, now);
            }
            None => output.count_no_copy(),
        }
    }
}

/// Copies a frame with what is known of it; `None` if the pool has too few buffers. A buffer has one
/// owner, since devices and roles may write into it, so a flooded frame is copied.
fn copy(frame: &Mbuf, cache: &mut PoolCache) -> Option<Mbuf> {
    let mut copy: Option<Mbuf> = None;
    for segment in frame.segments() {
        let piece = cache.alloc_from(segment)?;
        match &mut copy {
            None => copy = Some(piece),
            // Dropped, the pieces go back to the pool.
            Some(copy) => copy.chain(piece).ok()?,
        }
    }
    let mut copy = copy?;
    copy.set_origin(
        frame.port(),
        frame.queue(),
        frame.ordinal(),
        frame.arrival(),
    );
    if let Some(time) = frame.wire_time() {
        copy.set_wire_time(time);
    }
    for flag in [MbufFlags::RECORDED, MbufFlags::CHECKSUM_TRUSTED] {
        if frame.flags().contains(flag) {
            copy.add_flags(flag);
        }
    }
    copy.set_checksum_request(frame.checksum_request());
    Some(copy)
}
