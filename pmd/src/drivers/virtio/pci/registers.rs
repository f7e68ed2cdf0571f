//! All registers of a device.

use super::capability::Windows;
use super::common::{Common, status};
use super::config::{Facts, NetConfig};
use super::error::wrong;
use super::notify::NotifyWindow;
use super::window::Window;
use crate::bus::{Bus, BusError, Device};
use crate::drivers::virtio::Features;

const TOO_SHORT: &str = "its windows of registers are too short: it is not the device that its \
                         number says, or the machine's monitor is broken; update that";

pub(super) const NO_REST: &str = "it does not come to rest when it is reset: it has been unplugged, \
                                  or hangs; plug it in again, or start the machine anew";

pub(super) struct Registers<B> {
    pub(super) common: Common<B>,
    pub(super) config: NetConfig<B>,
    pub(super) notify: NotifyWindow<B>,
    /// Features that the device offered when it was probed.
    pub(super) offered: Features,
    pub(super) facts: Facts,
}

impl<B: Bus> Registers<B> {
    /// Finds the registers of a device, and reads its properties. The device is at rest before and
    /// after.
    ///
    /// # Errors
    /// A device that does not conform to the standard, or does not answer as specified.
    pub(super) fn find<D: Device<Bus = B>>(device: &D) -> Result<Self, BusError> {
        let Windows {
            common,
            device: window,
            notify,
        } = Windows::find(device)?;
        let common = Common::new(common).ok_or_else(|| wrong(device, TOO_SHORT))?;
        let at_rest = || {
            if common.reset(&device.clock()) {
                Ok(())
            } else {
                Err(wrong(device, NO_REST))
            }
        };
        at_rest()?;
        let found = Self::examine(device, &common, window);
        at_rest()?;
        let (offered, facts, config) = found?;
        Ok(Self {
            common,
            config,
            notify,
            offered,
            facts,
        })
    }

    /// Section 3.1.1: the offered features and the configuration may be read before the device is
    /// used.
    fn examine<D: Device<Bus = B>>(
        device: &D,
        common: &Common<B>,
        window: Window<B>,
    ) -> Result<(Features, Facts, NetConfig<B>), BusError> {
        common.add_status(status::ACKNOWLEDGE);
        common.add_status(status::DRIVER);
        let offered = common.offered();
        if !offered.contains(Features::VERSION_1) {
            return Err(wrong(
                device,
                "it does not offer VIRTIO_F_VERSION_1, without which it is from before the \
                 standard: have the machine's monitor make a modern one (QEMU: \
                 virtio-net-pci,disable-legacy=on,disable-modern=off)",
            ));
        }
        let config = NetConfig::new(window, offered).ok_or_else(|| wrong(device, TOO_SHORT))?;
        let facts = config.facts(common).ok_or_else(|| {
            let what = "its configuration changes faster than it can be read; try again, or \
                        start the machine anew";
            wrong(device, what)
        })?;
        Ok((offered, facts, config))
    }
}
