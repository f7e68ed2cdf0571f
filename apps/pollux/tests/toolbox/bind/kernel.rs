//! The part of the kernel that answers: drivers_probe and each driver's unbind are pipes, and a
//! thread at the other end of each does what the kernel does.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tempfile::TempDir;

const QUIT: &str = "quit";

/// What the threads look at.
struct State {
    root: PathBuf,
    /// Drivers that a device would have by itself, and drivers that take none.
    own: Mutex<Vec<(String, String)>>,
    refusing: Mutex<Vec<String>>,
}

pub(crate) struct Kernel {
    folder: TempDir,
    state: Arc<State>,
    threads: Mutex<Vec<(PathBuf, JoinHandle<()>)>>,
}

impl Kernel {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = State {
            root: folder.path().into(),
            own: Mutex::default(),
            refusing: Mutex::default(),
        };
        let kernel = Self {
            folder,
            state: Arc::new(state),
            threads: Mutex::default(),
        };
        kernel.file("proc/net/route", "Iface\tDestination\n");
        let state = Arc::clone(&kernel.state);
        kernel.answer("sys/bus/pci/drivers_probe", move |address| {
            state.probe(address);
        });
        kernel
    }

    pub(crate) fn root(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    pub(crate) fn file(&self, path: &str, text: &str) -> &Self {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A network controller, bound to a driver that is there for it.
    pub(crate) fn device(&self, address: &str, driver: &str, interface: &str) -> &Self {
        let of = |attribute: &str| format!("sys/bus/pci/devices/{address}/{attribute}");
        self.file(&of("class"), "0x020000\n")
            .file(&of("vendor"), "0x8086\n")
            .file(&of("device"), "0x1572\n")
            .file(&of("modalias"), "pci:v00008086d00001572sv*\n")
            .file(&of("driver_override"), "(null)\n")
            .file(&of(&format!("net/{interface}/flags")), "0x1002\n");
        if !self
            .folder
            .path()
            .join("sys/bus/pci/drivers")
            .join(driver)
            .exists()
        {
            self.driver(driver);
        }
        self.state
            .own
            .lock()
            .unwrap()
            .push((address.into(), driver.into()));
        self.state.attach(address, driver);
        self
    }

    /// An IOMMU group for a device.
    pub(crate) fn group(&self, address: &str, number: u32) -> &Self {
        let group = format!("sys/kernel/iommu_groups/{number}");
        self.file(&format!("{group}/devices/{address}/x"), "");
        let link = self.state.device(address).join("iommu_group");
        symlink(self.folder.path().join(group), link).unwrap();
        self
    }

    /// A driver that is loaded.
    pub(crate) fn driver(&self, name: &str) -> &Self {
        let state = Arc::clone(&self.state);
        self.answer(
            &format!("sys/bus/pci/drivers/{name}/unbind"),
            move |address| {
                fs::remove_file(state.device(address).join("driver")).unwrap();
            },
        );
        self
    }

    /// From now on the driver takes no device.
    pub(crate) fn refuses(&self, driver: &str) -> &Self {
        self.state.refusing.lock().unwrap().push(driver.into());
        self
    }

    pub(crate) fn bound(&self, address: &str) -> Option<String> {
        let target = fs::read_link(self.state.device(address).join("driver")).ok()?;
        Some(target.file_name()?.to_str()?.to_owned())
    }

    pub(crate) fn overridden(&self, address: &str) -> String {
        self.state.overridden(address)
    }

    fn answer(&self, path: &str, with: impl Fn(&str) + Send + 'static) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        let thread = std::thread::spawn({
            let path = path.clone();
            move || {
                loop {
                    let text = fs::read_to_string(&path).unwrap();
                    match text.trim() {
                        QUIT => return,
                        "" => {}
                        text => with(text),
                    }
                }
            }
        });
        self.threads.lock().unwrap().push((path, thread));
    }
}

impl State {
    fn device(&self, address: &str) -> PathBuf {
        Path::new(&self.root)
            .join("sys/bus/pci/devices")
            .join(address)
    }

    fn overridden(&self, address: &str) -> String {
        let text = fs::read_to_string(self.device(address).join("driver_override")).unwrap();
        // A shorter text was written over a longer one: what counts ends with its line.
        let line = text.lines().next().unwrap_or_default();
        if line == "(null)" {
            String::new()
        } else {
            line.into()
        }
    }

    fn probe(&self, address: &str) {
        let name = match self.overridden(address) {
            name if name.is_empty() => {
                let own = self.own.lock().unwrap();
                own.iter().find(|(of, _)| of == address).unwrap().1.clone()
            }
            name => name,
        };
        let bound = self.device(address).join("driver").is_symlink();
        if !bound && !self.refusing.lock().unwrap().contains(&name) {
            self.attach(address, &name);
        }
    }

    fn attach(&self, address: &str, driver: &str) {
        let target = self.root.join("sys/bus/pci/drivers").join(driver);
        symlink(target, self.device(address).join("driver")).unwrap();
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        for (path, thread) in self.threads.lock().unwrap().drain(..) {
            let _ = fs::write(path, QUIT);
            let _ = thread.join();
        }
    }
}
