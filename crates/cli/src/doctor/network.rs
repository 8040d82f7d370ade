//! The doctor's checks outside the disk: the host that should answer, and the port it would use.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use client::{ClientError, Connection, Endpoint, EndpointError};

use super::Finding;
use super::directory::check_private_file;
use crate::restart::compare_versions;
use crate::stop::command_for;
use crate::target::HostOptions;

/// `listen` is where a host would listen by its settings, if they can be read.
pub(super) async fn check(
    options: &HostOptions,
    data: &Path,
    listen: Option<SocketAddr>,
) -> Vec<Finding> {
    if options.named_host().is_some() {
        return check_host(options).await;
    }
    let port = listen.unwrap_or(DEFAULT_ADDRESS);
    let file = data.join(client::endpoint::FILE_NAME);
    let endpoint = match Endpoint::find(data) {
        Ok(endpoint) => endpoint,
        Err(error) => {
            let mut findings = explain_missing(&error, &file);
            findings.push(check_port(port, None));
            return findings;
        }
    };
    let mut findings = vec![check_private_file(ENDPOINT, &file, "no host runs")];
    findings.extend(check_host(options).await);
    let restart = command_for("restart", data);
    if let Some(note) = compare_versions(&endpoint.version, host::VERSION, &restart) {
        findings.push(Finding::warn(HOST, note));
    }
    findings.push(check_port(port, Some(&endpoint.url)));
    findings
}

const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), host::DEFAULT_PORT);

const ENDPOINT: &str = "endpoint file";
const HOST: &str = "host";

/// Why no host was found, and what to do about it.
fn explain_missing(error: &EndpointError, file: &Path) -> Vec<Finding> {
    let none = Finding::warn(HOST, "none is running; start one with `greenroom serve`");
    match error {
        EndpointError::NoHost { .. } => vec![none],
        EndpointError::LeftBehind { pid, .. } => {
            let message = format!(
                "{} was left by a host that was killed (pid {pid}); clients ignore it, and the next start replaces it",
                file.display()
            );
            vec![Finding::warn(ENDPOINT, message), none]
        }
        EndpointError::NotListening { .. } => vec![Finding::warn(
            HOST,
            "one holds the data directory but does not say where it listens: it is starting or stopping, or serves \
             standard input and output; try again in a moment",
        )],
        EndpointError::Outdated { .. } => vec![Finding::fail(HOST, error.to_string())],
        EndpointError::Unreadable { .. }
        | EndpointError::Malformed { .. }
        | EndpointError::NoHome => vec![Finding::fail(ENDPOINT, error.to_string())],
    }
}

/// Does the host answer, what is it, and does it prove that it knows the token?
async fn check_host(options: &HostOptions) -> Vec<Finding> {
    let destination = match options.destination() {
        Ok(destination) => destination,
        Err(error) => return vec![Finding::fail(HOST, format!("{error:#}"))],
    };
    // The address may carry a token; what follows the `?` must not be printed.
    let url = destination.target().url.split('?').next().unwrap_or_default();
    let asked = async {
        let (connection, _events) = Connection::connect_to(&destination).await?;
        let client_id = format!("greenroom-doctor-{}", uuid::Uuid::now_v7());
        let initialized = connection.initialize(&client_id, &[]).await?;
        connection.ping().await?;
        connection.close().await;
        Ok(initialized)
    };
    let initialized = match asked.await {
        Ok(initialized) => initialized,
        Err(ClientError::NotProven { why, .. }) => {
            let message = format!(
                "what listens at {url} does not know the token of this data directory: {why}. No token was sent. If a host of \
                 an earlier version runs, restart it; else stop what listens there, then the host, and start it again"
            );
            return vec![Finding::fail(PROOF, message)];
        }
        Err(error) => return vec![Finding::fail(HOST, error.to_string())],
    };
    let server = initialized.server_info.unwrap_or_else(|| "a host".to_owned());
    let protocol = initialized.protocol_version;
    let answers = format!("{server} answers at {url}, protocol {protocol}");
    let mut findings = vec![Finding::ok(HOST, answers)];
    if destination.must_prove() {
        let message = "the host proved that it knows the token before it was sent";
        findings.insert(0, Finding::ok(PROOF, message));
    }
    findings
}

const PROOF: &str = "proof";

/// Is the port that a host would use free, or taken by our host?
fn check_port(address: SocketAddr, ours: Option<&str>) -> Finding {
    const WHAT: &str = "port";
    let port = address.port();
    if port == 0 {
        return Finding::ok(WHAT, "any that is free, by the settings");
    }
    let taken = TcpListener::bind(address).is_err();
    let is_ours = ours.is_some_and(|url| url.contains(&format!(":{port}/")));
    let stranger =
        format!("{address} is taken by another program (`ss -ltnp sport = :{port}` names it)");
    match (taken, is_ours) {
        (true, true) => Finding::ok(WHAT, format!("{address} is taken by our host")),
        // A host in the background takes another port, unless one was asked for.
        (true, false) if address == DEFAULT_ADDRESS => Finding::warn(
            WHAT,
            format!("{stranger}; end it, or set `listen` with `greenroom config edit`"),
        ),
        (true, false) => Finding::fail(
            WHAT,
            format!("{stranger}; end it, or change `listen` with `greenroom config edit`"),
        ),
        (false, _) => Finding::ok(WHAT, format!("{address} is free")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::CheckLevel;

    #[test]
    fn a_port_is_free_ours_or_anothers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("ws://{address}/");
        assert_eq!(check_port(address, Some(&url)).level, CheckLevel::Ok);
        assert_eq!(check_port(address, Some("ws://127.0.0.1:1/")).level, CheckLevel::Fail);
        let taken = check_port(address, None);
        assert_eq!(taken.level, CheckLevel::Fail);
        assert!(taken.message.contains("greenroom config edit"), "{taken:?}");
        drop(listener);
        assert!(check_port(address, None).message.contains("is free"));
    }
}
