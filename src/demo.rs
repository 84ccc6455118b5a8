//! Owns: the demonstration: a bundled tool server, a name server whose answers change, and a walk through what Tollgate does.
//! Imports: layers 0 and 1 (`mcp`).
//! Never: leaves loopback, or reaches into a running Tollgate; it speaks to it as an agent does.
//! Fails as: [`DemoError`]; a step that went otherwise than it should is a result, not an error.

mod client;
mod folder;
mod names;
mod records;
mod screen;
mod server;
mod walk;

use std::io;

pub use client::{Answer, Client};
pub use folder::Folder;
pub use names::NameServer;
pub use screen::Screen;
pub use server::ToolServer;
pub use walk::Walk;

/// The name that changes its address under way.
pub const REBINDING_NAME: &str = "rebind.demo.test";

/// Why the demonstration cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The tool server or the name server has no socket.
    #[error("the demo cannot listen on 127.0.0.1")]
    Listen(#[source] io::Error),
    /// The temporary folder cannot be made.
    #[error(
        "the demo cannot write its folder `{folder}`; set TMPDIR to a folder that can be written"
    )]
    Folder {
        /// The folder.
        folder: std::path::PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The screen went away.
    #[error("the demo cannot write its output")]
    Screen(#[source] io::Error),
    /// Tollgate does not answer as an MCP server does.
    #[error("no valid answer from Tollgate: {0}")]
    Answer(String),
}
