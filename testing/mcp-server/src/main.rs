//! The test server as a program: stdio, or streamable HTTP on a port of its own.

fn main() -> anyhow::Result<()> {
    mcp_server::run()
}
