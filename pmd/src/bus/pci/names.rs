//! Names of PCI vendors and devices: the list of <https://pci-ids.ucw.cz>, as Debian's packages
//! pci.ids and hwdata install it.

use std::fs;

use crate::bus::Ids;

/// The list; empty if none is installed.
#[derive(Clone, Debug, Default)]
pub struct Names(String);

impl Names {
    /// Reads the installed list.
    #[must_use]
    pub fn load() -> Self {
        let places = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"];
        let text = places.iter().find_map(|path| fs::read(path).ok());
        Self(String::from_utf8_lossy(&text.unwrap_or_default()).into_owned())
    }

    /// Name of a device with its vendor: `Intel Corporation 82574L Gigabit Network Connection`. An
    /// unknown name is replaced by the number: `8086:10d3`.
    #[must_use]
    pub fn device(&self, ids: Ids) -> String {
        let Ids { vendor, device, .. } = ids;
        match self.entry(&format!("{vendor:04x}"), &format!("{device:04x}")) {
            (Some(vendor), Some(device)) => format!("{vendor} {device}"),
            (Some(vendor), None) => format!("{vendor} {device:04x}"),
            (None, _) => ids.to_string(),
        }
    }

    /// Name of a device class: `Ethernet controller`. An unknown name is replaced by the number.
    #[must_use]
    pub fn class(&self, class: u32) -> String {
        let (base, sub) = (class >> 16 & 0xff, class >> 8 & 0xff);
        match self.entry(&format!("C {base:02x}"), &format!("{sub:02x}")) {
            (_, Some(name)) | (Some(name), None) => name.to_owned(),
            (None, None) => format!("class {class:06x}"),
        }
    }

    /// The names of an entry of the first level, and of one below it:
    ///
    /// ```text
    /// 8086  Intel Corporation
    ///     10d3  82574L Gigabit Network Connection
    ///         103c 1717  a board of another vendor
    /// ```
    fn entry(&self, first: &str, second: &str) -> (Option<&str>, Option<&str>) {
        let mut lines = self.0.lines().filter(|line| !line.starts_with('#'));
        let Some(found) = lines.find_map(|line| name(line, first)) else {
            return (None, None);
        };
        let mut below = lines
            .take_while(|line| line.is_empty() || line.starts_with('\t'))
            .filter_map(|line| line.strip_prefix('\t'));
        (Some(found), below.find_map(|line| name(line, second)))
    }
}

/// The name on a line that begins with an ID.
fn name<'a>(line: &'a str, id: &str) -> Option<&'a str> {
    line.strip_prefix(id)?.strip_prefix("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
# a comment
8086  Intel Corporation
\t10d2  another
\t\t10d3 1717  a board
# inside
\t10d3  82574L Gigabit Network Connection
1af4  Red Hat, Inc.
\t1041  Virtio 1.0 network device
C 02  Network controller
\t00  Ethernet controller
";

    #[test]
    fn names_where_there_are_any() {
        let names = Names(LIST.into());
        let device = |vendor, device| {
            let ids = Ids {
                vendor,
                device,
                ..Ids::default()
            };
            (names.device(ids), Names::default().device(ids))
        };
        let intel = "Intel Corporation 82574L Gigabit Network Connection";
        assert_eq!(device(0x8086, 0x10d3), (intel.into(), "8086:10d3".into()));
        assert_eq!(device(0x8086, 0x1041).0, "Intel Corporation 1041");
        assert_eq!(device(0x1af5, 0x1041).0, "1af5:1041");
        assert_eq!(names.class(0x0002_0000), "Ethernet controller");
        assert_eq!(names.class(0x0002_8000), "Network controller");
        assert_eq!(names.class(0x0001_0802), "class 010802");
    }
}
