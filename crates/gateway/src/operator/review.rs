//! A server as its reviewer sees it: its definition and its program, against what was approved.

use domain::config::ServerOrigin;
use domain::trust::{ServerChange, ServerText, reviewed};
use store::state::ServerState;

use crate::command::ProgramFile;
use crate::spec::Trust;

/// A server for review. An approval must name its fingerprint.
pub struct ServerReview {
    pub is_quarantined: bool,
    /// Items of the server are known; otherwise its first list after the approval counts as
    /// approved.
    pub has_listed: bool,
    pub(super) trust: Trust,
    pub(super) program: Option<ProgramFile>,
    pub(super) state: ServerState,
}

impl ServerReview {
    /// Returns the fingerprint of what is shown.
    pub fn fingerprint(&self) -> String {
        let program = self.program.as_ref().map(ToString::to_string);
        reviewed(&self.trust.identity, program.as_deref()).to_string()
    }

    /// Returns the definition with the program.
    pub fn text(&self) -> ServerText {
        let text = self.trust.text.clone();
        match &self.program {
            Some(ProgramFile { path, sha256 }) => {
                text.with_program(&path.display().to_string(), sha256)
            }
            None => text,
        }
    }

    /// Returns the approved definition as the reviewer sees it, if it is known.
    pub fn approved_text(&self) -> Option<String> {
        Some(self.text().shown_stored(self.state.approved_text.as_deref()?))
    }

    /// Returns why the server waits for approval; `None` if it does not, or a person put it in
    /// quarantine.
    pub fn change(&self) -> Option<ServerChange> {
        if !self.is_quarantined {
            return None;
        }
        match &self.state.approved {
            None if self.trust.is_altered => Some(ServerChange::Program),
            None if self.state.quarantined && self.trust.origin == ServerOrigin::Own => None,
            None => Some(ServerChange::New),
            Some(approved) if *approved == self.trust.identity => {
                self.trust.is_altered.then_some(ServerChange::Program)
            }
            Some(_) => Some(ServerChange::Changed),
        }
    }
}
