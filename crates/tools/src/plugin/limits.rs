//! Bounds of plugins, each with its reason.

use std::time::Duration;

/// A manifest, or a file of declarations: more is some other file.
pub(super) const YAML_BYTES_MAX: u64 = 256 * 1024;

/// Levels and values of such a file: 32 lists or mappings within each other, and words in them.
pub(super) const YAML_DEPTH_MAX: usize = 33;
pub(super) const YAML_VALUES_MAX: usize = 10_000;

/// Entries of one plugin folder that are looked at.
pub(super) const FOLDERS_MAX: usize = 1000;

/// An executable is read whole for its digest. Those in Go have some tens of megabytes.
pub(super) const EXECUTABLE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// A plugin's name, so that `<plugin>_<operation>` has room in a tool's name.
pub(super) const NAME_CHARS_MAX: usize = 48;

/// What every agent takes as the name of a tool.
pub(super) const TOOL_NAME_CHARS_MAX: usize = 64;

/// What every agent takes as the name of an argument.
pub(super) const INPUT_NAME_CHARS_MAX: usize = 64;

/// Operations of one plugin; more than any model can choose from.
pub(super) const OPERATIONS_MAX: usize = 1000;

/// Lines on stdout before the one that says where the plugin listens.
pub(super) const LINES_BEFORE_HANDSHAKE_MAX: usize = 1000;

/// The arguments of a call, and its answer: as large as an MCP message may be, which it becomes. An
/// answer that is longer is refused by the length that it announces, before it is read.
pub(super) const MESSAGE_BYTES_MAX: usize = mcp::limits::FRAME_BYTES_MAX;

/// Unix sockets have a path of 104 bytes on macOS, 108 on Linux.
pub(super) const SOCKET_PATH_BYTES_MAX: usize = 103;

/// Left for the name of the socket: go-plugin draws `plugin` and up to ten digits.
pub(super) const SOCKET_NAME_BYTES: usize = 24;

/// To say goodbye to a plugin: a courtesy, after which it is ended anyway.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);

/// Whoever did not answer a call in time is asked how it is; without an answer it is given up.
pub(super) const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// A plugin whose connection broke has most often ended: how long to wait for its status.
pub(super) const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);

/// Starts of an executable that somebody else's child still holds open for writing.
pub(super) const BUSY_ATTEMPTS_MAX: usize = 20;
pub(super) const BUSY_WAIT: Duration = Duration::from_millis(20);
