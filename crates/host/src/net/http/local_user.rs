//! Whose program on this machine is at the other end of a socket, as the system's table of connections says (Linux).
//!
//! Promises: a connection of another user of this machine is told from one of our own. What the table does not hold, such as one
//! from another machine, is nobody's here. Must not know: what it is asked for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The tables of this network namespace; IPv4 addresses are in the second one, too, when a program uses them so.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// What the system calls itself.
const RELEASE: &str = "/proc/sys/kernel/osrelease";
const ROOT: u32 = 0;

/// Whether the socket at that address belongs to another user of this machine. Blocks.
pub(super) fn is_other_user(peer: SocketAddr) -> bool {
    let own = rustix::process::geteuid().as_raw();
    // Systems without these tables do not say, and neither do they let others see arguments of programs by them.
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let release = read(RELEASE);
    TABLES.iter().any(|table| owners(&read(table), peer).any(|user| !is_own(user, own, &release)))
}

/// Windows reaches the ports of the Linux in it (WSL 2) by a program that root runs there, so there root stands for whoever sits at the
/// machine. Elsewhere it does not: a proxy that root runs serves all users.
fn is_own(user: u32, own: u32, release: &str) -> bool {
    user == own || (user == ROOT && release.contains("WSL2"))
}

/// A connection that is closed and waits for late packets, `TIME_WAIT`. It is nobody's any more, and the table names root for it.
const CLOSED_STATE: &str = "06";

/// The users of all sockets that are bound to an address: one port can be the near end of several connections.
fn owners(table: &str, address: SocketAddr) -> impl Iterator<Item = u32> {
    let wanted = (address.ip().to_canonical(), address.port());
    table.lines().skip(1).filter_map(move |row| {
        let mut fields = row.split_ascii_whitespace();
        let local = read_address(fields.nth(1)?)?;
        // Behind it: the far end, state, queues, timer, retransmits, user.
        let state = fields.nth(1)?;
        let is_open = local == wanted && state != CLOSED_STATE;
        is_open.then(|| fields.nth(3)?.parse().ok())?
    })
}

/// `0100007F:1F90`: words of four bytes, the lowest first, as they lie in memory here.
fn read_address(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| {
        let hex = ip.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(hex, 16).ok()?.to_ne_bytes())
    };
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None, // no address that is known
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
        0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 20 4 30 10 -1\n\
        1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 20 4 30 10 -1\n\
        2: 0000000000000000FFFF00000100007F:C351 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1002        0 3 1 0 20 4 30 10 -1\n\
        3: 00000000000000000000000001000000:C352 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000  1003        0 3 1 0 20 4 30 10 -1\n\
        4: 0100007F:C350 0100007F:1F91 06 00000000:00000000 03:00000F3E 00000000     0        0 0 3 0\n\
        odd\n";

    #[test]
    fn rows_are_found_by_the_near_end() {
        if cfg!(target_endian = "big") {
            return; // the rows above are of the other kind
        }
        for (address, expected) in [
            ("127.0.0.1:8080", &[1_000][..]),
            ("127.0.0.1:50000", &[1_001]),
            ("127.0.0.1:50001", &[1_002]),
            ("[::1]:50002", &[1_003]),
            ("127.0.0.2:8080", &[]),
            ("127.0.0.1:1", &[]),
        ] {
            let found: Vec<u32> = owners(ROWS, address.parse().unwrap()).collect();
            assert_eq!(found, expected, "{address}");
        }
    }

    #[test]
    fn root_stands_for_the_user_in_windows_alone() {
        let (linux, windows) = ("6.1.0-18-amd64", "5.15.90.1-microsoft-standard-WSL2");
        for (user, release, expected) in [
            (1_000, linux, true),
            (1_001, linux, false),
            (ROOT, linux, false),
            (ROOT, "", false),
            (ROOT, windows, true),
            (1_001, windows, false),
        ] {
            assert_eq!(is_own(user, 1_000, release), expected, "{user} {release}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_connection_of_our_own_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_server, peer) = listener.accept().unwrap();
        let rows = std::fs::read_to_string(TABLES[0]).unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(owners(&rows, peer).collect::<Vec<_>>(), [own]);
        assert!(!is_other_user(peer));
    }
}
