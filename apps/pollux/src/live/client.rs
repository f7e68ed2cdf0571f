//! HTTP client that reads a program's metrics page.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ureq::http::Uri;

use super::openmetrics::Page;

/// Longest page that is read: some thousand streams take half of it.
const LONGEST: u64 = 4 << 20;

/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(2);

/// A program, identified by the address of its metrics.
pub(super) struct Client {
    agent: ureq::Agent,
    url: String,
}

impl Client {
    /// `address` is HOST:PORT, or a whole URL.
    ///
    /// # Errors
    /// Text that is neither.
    pub(super) fn new(address: &str) -> Result<Self> {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
        let url = if address.contains("://") {
            address.into()
        } else {
            format!("http://{address}/metrics")
        };
        ensure!(
            is_url(&url),
            "`{address}` is not an address: write HOST:PORT, or a URL"
        );
        Ok(Self {
            agent: config.build().into(),
            url,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Reads the current page.
    pub(super) fn page(&self) -> Result<Page> {
        let asking = || {
            let url = &self.url;
            format!("no metrics at {url} (start the program with --metrics ADDRESS:PORT)")
        };
        let mut answer = self.agent.get(&self.url).call().with_context(asking)?;
        let body = answer.body_mut().with_config().limit(LONGEST);
        Ok(Page::parse(&body.read_to_string().with_context(asking)?))
    }
}

/// Whether the URL is usable: it has a host, and a valid port.
fn is_url(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else {
        return false;
    };
    // The parser drops a port that is out of range.
    let ends = |host: &str| {
        url.authority()
            .is_some_and(|all| all.as_str().ends_with(host))
    };
    let host = url.host().filter(|host| !host.is_empty());
    host.is_some_and(|host| url.port_u16().is_some() || ends(host))
}
