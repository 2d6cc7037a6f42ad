//! Limits of plugins, each with its reason.

use std::time::Duration;

/// Size of a manifest or a file of declarations; a larger one is some other file.
pub(super) const YAML_BYTES_MAX: u64 = 256 * 1024;

/// Levels and values of such a file: 32 nested lists or mappings, and the words in them.
pub(super) const YAML_DEPTH_MAX: usize = 33;
pub(super) const YAML_VALUES_MAX: usize = 10_000;

/// Entries of one plugin folder that are read.
pub(super) const FOLDERS_MAX: usize = 1000;

/// An executable is read whole for its digest. Those written in Go have some tens of megabytes.
pub(super) const EXECUTABLE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Length of a plugin's name, so that `<plugin>_<operation>` fits in a tool's name.
pub(super) const NAME_CHARS_MAX: usize = 48;

/// Length of a tool's name that every agent accepts.
pub(super) const TOOL_NAME_CHARS_MAX: usize = 64;

/// Length of an argument's name that every agent accepts.
pub(super) const INPUT_NAME_CHARS_MAX: usize = 64;

/// Operations of one plugin; more than any model can choose from.
pub(super) const OPERATIONS_MAX: usize = 1000;

/// Lines on stdout before the one with the plugin's address.
pub(super) const LINES_BEFORE_HANDSHAKE_MAX: usize = 1000;

/// Size of a call's arguments, and of its response: as large as an MCP message may be, since it
/// becomes one. A longer response is rejected by its announced length, before it is read.
pub(super) const MESSAGE_BYTES_MAX: usize = mcp::limits::FRAME_BYTES_MAX;

/// Unix socket paths are limited to 104 bytes on macOS, 108 on Linux.
pub(super) const SOCKET_PATH_BYTES_MAX: usize = 103;

/// Bytes reserved for the name of the socket: go-plugin uses `plugin` and up to ten random digits.
pub(super) const SOCKET_NAME_BYTES: usize = 24;

/// Time for a plugin to shut down, a courtesy after which it is ended anyway.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);

/// Timeout of the health check of a plugin that did not answer a call in time; without a response
/// it is given up.
pub(super) const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// Wait for the exit status of a plugin whose connection broke: most often it has exited.
pub(super) const EXIT_STATUS_WAIT: Duration = Duration::from_millis(500);

/// Attempts to start an executable that another child still holds open for writing.
pub(super) const BUSY_ATTEMPTS_MAX: usize = 20;
pub(super) const BUSY_WAIT: Duration = Duration::from_millis(20);
