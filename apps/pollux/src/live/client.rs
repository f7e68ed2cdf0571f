//! Asks a program for its page.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use ureq::http::Uri;

use super::openmetrics::Page;

/// Longest answer that is read: some thousand streams take half of it.
const LONGEST: u64 = 4 << 20;

/// Longest time that an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A program, by the address of its metrics.
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
            "`{address}` is no address: write HOST:PORT, or a URL"
        );
        Ok(Self {
            agent: config.build().into(),
            url,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The page as it is now.
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

/// Whether there may be a program at that URL: with a host, and a port that is one.
fn is_url(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else {
        return false;
    };
    // A port that is out of range is not there.
    let ends = |host: &str| {
        url.authority()
            .is_some_and(|all| all.as_str().ends_with(host))
    };
    let host = url.host().filter(|host| !host.is_empty());
    host.is_some_and(|host| url.port_u16().is_some() || ends(host))
}
