//! The NICs of the machine: what they are, and in whose hands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use pollux_pmd::bus::pci::Sysfs;

const DEVICES: &str = "/sys/bus/pci/devices";

/// For what takes a moment: long, for a machine that is emulated on one that is busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Who has a NIC.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A driver of the kernel; our port is on its interface.
    Kernel,
    /// A program: the NIC is bound to vfio-pci.
    Program,
}

impl Owner {
    /// The port on a NIC that is in these hands.
    pub(crate) fn spec(self, nic: &Nic) -> Result<String> {
        Ok(match self {
            Self::Kernel => format!("af_packet:{}", nic.interface()?),
            // In a machine without an IOMMU that is meant.
            Self::Program if Sysfs::default().allows_no_iommu() => {
                format!("pci:{},mtu=9000,noiommu=on", nic.address)
            }
            Self::Program => format!("pci:{},mtu=9000", nic.address),
        })
    }
}

/// A network controller on the PCI bus.
#[derive(Clone, Debug)]
pub(crate) struct Nic {
    pub(crate) address: String,
}

/// All of them, by address: `a` is on an earlier bus than `b`.
pub(crate) fn all() -> Result<Vec<Nic>> {
    let mut addresses = Vec::new();
    for entry in fs::read_dir(DEVICES)? {
        let entry = entry?;
        let class = fs::read_to_string(entry.path().join("class"))?;
        if class.starts_with("0x0200") {
            addresses.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    addresses.sort();
    Ok(addresses
        .into_iter()
        .map(|address| Nic { address })
        .collect())
}

impl Nic {
    /// Its folder in sysfs.
    pub(crate) fn folder(&self) -> PathBuf {
        Path::new(DEVICES).join(&self.address)
    }

    fn driver(&self) -> Option<String> {
        let driver = fs::read_link(self.folder().join("driver")).ok()?;
        Some(driver.file_name()?.to_string_lossy().into_owned())
    }

    /// Number of its IOMMU group.
    pub(crate) fn group(&self) -> Result<String> {
        let link = fs::read_link(self.folder().join("iommu_group"))?;
        let name = link.file_name().context("its IOMMU group has no name")?;
        Ok(name.to_string_lossy().into_owned())
    }

    /// The file that hands it out, on a kernel that has one for each device.
    pub(crate) fn own_file(&self) -> Result<String> {
        let mut files = fs::read_dir(self.folder().join("vfio-dev"))?;
        let file = files.next().context("it has no file of its own")??;
        Ok(format!("/dev/vfio/devices/{}", file.file_name().display()))
    }

    /// Its interface, while a driver of the kernel has it.
    pub(crate) fn interface(&self) -> Result<String> {
        let inner = |folder: &Path| {
            let mut names = fs::read_dir(folder.join("net")).ok()?;
            Some(
                names
                    .next()?
                    .ok()?
                    .file_name()
                    .to_string_lossy()
                    .into_owned(),
            )
        };
        let folder = self.folder();
        let mut folders: Vec<_> = vec![folder.clone()];
        // A virtio device is a device on a bus inside the PCI device.
        for entry in fs::read_dir(&folder)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("virtio") {
                folders.push(entry.path());
            }
        }
        let found = folders.iter().find_map(|folder| inner(folder));
        found.with_context(|| format!("{} has no interface", self.address))
    }

    /// Puts it into these hands, by the script that users have for that.
    pub(crate) fn give_to(&self, owner: Owner) -> Result<()> {
        let wanted = owner == Owner::Program;
        if (self.driver().as_deref() == Some("vfio-pci")) == wanted {
            return Ok(());
        }
        if wanted && let Ok(name) = self.interface() {
            // With an address it would be refused, as it carries the network.
            run(&["ip", "address", "flush", "dev", &name])?;
        }
        let mut words = vec!["sh", "/bin/bind"];
        words.extend((!wanted).then_some("--unbind"));
        words.push(&self.address);
        run(&words)?;
        let driver = self.driver();
        ensure!(
            (driver.as_deref() == Some("vfio-pci")) == wanted,
            "{} is bound to {driver:?} after {words:?}",
            self.address
        );
        Ok(())
    }

    /// Has the kernel's interface up, for frames that are as long as they come.
    pub(crate) fn bring_up(&self) -> Result<String> {
        let name = self.interface()?;
        run(&["ip", "link", "set", &name, "mtu", "9000", "up"])?;
        // Not `carrier`: until the kernel has taken note of it, it drops what it is to send.
        let state = format!("/sys/class/net/{name}/operstate");
        wait_until("the link is up", || {
            fs::read_to_string(&state).is_ok_and(|text| text.trim() == "up")
        })?;
        Ok(name)
    }
}

/// Runs a program to its end; what it printed.
pub(crate) fn run(words: &[&str]) -> Result<String> {
    let line = words.join(" ");
    let output = Command::new(words[0])
        .args(&words[1..])
        .output()
        .with_context(|| line.clone())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{line}: {}, {}",
        output.status,
        said.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Looks again and again, for as long as [`PATIENCE`] lasts.
pub(crate) fn wait_until(what: &str, mut is: impl FnMut() -> bool) -> Result<()> {
    let began = Instant::now();
    while !is() {
        if began.elapsed() > PATIENCE {
            bail!("waited {PATIENCE:?} without success until {what}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
