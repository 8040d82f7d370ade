//! The scripted ACP agent as a process; see the library.

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    acp_agent::run(std::env::args().skip(1)).await?;
    // The runtime would wait for a read of standard input or a step that hangs.
    std::process::exit(0)
}
