//! The doctor's checks outside the disk: the host that should answer, and the port it would use.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use client::{Connection, Endpoint, EndpointError};

use super::Finding;
use super::directory::check_private_file;
use crate::target::HostOptions;

pub(super) async fn check(options: &HostOptions, data: &Path) -> Vec<Finding> {
    if options.named_host().is_some() {
        return vec![check_host(options).await];
    }
    let port = SocketAddr::from((Ipv4Addr::LOCALHOST, host::DEFAULT_PORT));
    let endpoint = match Endpoint::find(data) {
        Ok(endpoint) => endpoint,
        Err(EndpointError::NoHost { .. }) => {
            let none = Finding::warn("host", "none is running; start one with `greenroom serve`");
            return vec![none, check_port(port, None)];
        }
        Err(error) => {
            return vec![
                Finding::fail("host", error.to_string()),
                check_port(port, None),
            ];
        }
    };
    let file = check_private_file(
        "endpoint file",
        &data.join(client::endpoint::FILE_NAME),
        "no host runs",
    );
    vec![
        file,
        check_host(options).await,
        check_port(port, Some(&endpoint.url)),
    ]
}

/// Does the host answer, and what is it?
async fn check_host(options: &HostOptions) -> Finding {
    const WHAT: &str = "host";
    let asked = async {
        let target = options.target()?;
        let (connection, _events) = Connection::connect(&target).await?;
        let client_id = format!("greenroom-doctor-{}", uuid::Uuid::now_v7());
        let initialized = connection.initialize(&client_id, &[]).await?;
        connection.ping().await?;
        connection.close().await;
        anyhow::Ok((target.url, initialized))
    };
    match asked.await {
        Ok((url, initialized)) => {
            let server = initialized
                .server_info
                .unwrap_or_else(|| "a host".to_owned());
            let protocol = initialized.protocol_version;
            // The address may carry a token; what follows the `?` must not be printed.
            let url = url.split('?').next().unwrap_or_default();
            Finding::ok(
                WHAT,
                format!("{server} answers at {url}, protocol {protocol}"),
            )
        }
        Err(error) => Finding::fail(WHAT, format!("{error:#}")),
    }
}

/// Is the port that `greenroom serve` uses by default free, or taken by our host?
fn check_port(address: SocketAddr, ours: Option<&str>) -> Finding {
    const WHAT: &str = "port";
    let taken = TcpListener::bind(address).is_err();
    let is_ours = ours.is_some_and(|url| url.contains(&format!(":{}/", address.port())));
    match (taken, is_ours) {
        (true, true) => Finding::ok(WHAT, format!("{address} is taken by our host")),
        (true, false) => Finding::warn(
            WHAT,
            format!(
                "{address} is taken by another program; use `greenroom serve --listen 127.0.0.1:0`"
            ),
        ),
        (false, _) => Finding::ok(WHAT, format!("{address} is free")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn a_port_is_free_ours_or_anothers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("ws://{address}/");
        assert_eq!(check_port(address, Some(&url)).level, Level::Ok);
        assert_eq!(
            check_port(address, Some("ws://127.0.0.1:1/")).level,
            Level::Warn
        );
        assert_eq!(check_port(address, None).level, Level::Warn);
        drop(listener);
        assert!(check_port(address, None).message.contains("is free"));
    }
}
