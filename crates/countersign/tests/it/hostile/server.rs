//! Attacks by an MCP server that the gate is connected to.
