//! The settings of programs that use MCP servers: where they are, how a server is written in them,
//! edits that keep everything else, what an import takes over, and how a change is shown. Texts in,
//! texts out.

mod client;
pub mod edit;
mod hidden;
pub mod import;
mod preview;
mod reference;
pub mod scalar;

pub use client::{
    ClientProgram, ClientRoute, ENTRY, Roots, SettingsScope, SettingsSyntax, claude_permissions,
    launcher,
};
pub use preview::Preview;
pub use reference::Reference;
