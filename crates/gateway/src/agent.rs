//! The agent behind a call: its session, and the name under which records keep it.

use std::sync::Arc;

use domain::Caller;
use provider::{Call, Surface};
use store::RecordAgent;

/// Characters of a session id that distinguish it from others of the same program.
const SESSION_CHARS: usize = 8;

/// A session, its client, and the token that it belongs to.
#[derive(Clone, Copy)]
pub(crate) struct SessionKey<'a> {
    pub(crate) session: &'a Arc<str>,
    pub(crate) caller: &'a Caller,
    /// The name that the client gave.
    pub(crate) client: Option<&'a str>,
    pub(crate) surface: Surface,
}

impl<'a> SessionKey<'a> {
    /// Returns the session of a call, unless it was made without one.
    pub(crate) fn of(call: &'a Call) -> Option<SessionKey<'a>> {
        Some(SessionKey {
            session: call.session.as_ref()?,
            caller: &call.caller,
            client: call.client.as_deref(),
            surface: call.surface,
        })
    }

    /// Returns the agent of the session, as in records.
    pub(crate) fn agent(self) -> RecordAgent {
        session_agent(&self.caller.token, self.client, Some(self.session), self.surface)
    }
}

/// Returns the agent of a call, as in records.
pub(crate) fn of_call(call: &Call) -> RecordAgent {
    session_agent(&call.caller.token, call.client.as_deref(), call.session.as_deref(), call.surface)
}

/// Two sessions of one program are two agents: both may work on the same thing.
fn session_agent(
    token: &str,
    client: Option<&str>,
    session: Option<&str>,
    surface: Surface,
) -> RecordAgent {
    let (token, client) = (token.to_owned(), client.unwrap_or_default().to_owned());
    // In a run the token says more than the program: workflow, step and provider.
    let by_token = client.is_empty() || surface == Surface::Run;
    let program = if by_token { &token } else { &client };
    let name = match session {
        Some(session) => {
            let skipped = session.chars().count().saturating_sub(SESSION_CHARS);
            let tail: String = session.chars().skip(skipped).collect();
            format!("{program}#{tail}")
        }
        None => program.clone(),
    };
    RecordAgent { name, client, token }
}
