//! The built-in tools and the permissions they need.

/// The operator's permissions beyond reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    pub write: bool,
    pub shell: bool,
    pub allow_outside: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BuiltinTool {
    Read,
    Write,
    Edit,
    Bash,
    Glob,
    Grep,
}

impl BuiltinTool {
    pub(super) const ALL: [(BuiltinTool, &str); 6] = [
        (BuiltinTool::Read, "Read"),
        (BuiltinTool::Write, "Write"),
        (BuiltinTool::Edit, "Edit"),
        (BuiltinTool::Bash, "Bash"),
        (BuiltinTool::Glob, "Glob"),
        (BuiltinTool::Grep, "Grep"),
    ];

    pub(super) fn is_permitted(self, permissions: Permissions) -> bool {
        match self {
            BuiltinTool::Read | BuiltinTool::Glob | BuiltinTool::Grep => true,
            BuiltinTool::Write | BuiltinTool::Edit => permissions.write,
            BuiltinTool::Bash => permissions.shell,
        }
    }
}
