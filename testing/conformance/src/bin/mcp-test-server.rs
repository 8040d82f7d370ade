//! The MCP server for tests, as an executable of this package: cargo builds those for its tests.

fn main() -> anyhow::Result<()> {
    mcp_server::run()
}
