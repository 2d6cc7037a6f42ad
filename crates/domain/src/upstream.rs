//! The life cycle of a connection to a server, as a state machine: events in, effects out. The
//! driver that connects, waits and restarts is elsewhere and has no rules.

use std::fmt;
use std::time::Duration;

/// The longest reason; ours are one sentence, which may quote a parser's message.
const REASON_BYTES_MAX: usize = 1024;

/// The longest part of a server's own words that is kept next to the reason.
const SAID_BYTES_MAX: usize = 4 * 1024;

/// The delay after the first failure; it doubles each time.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// The longest delay: a server that recovers is noticed within about half a minute.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamState {
    /// Disabled, or lazy and not needed yet.
    Idle,
    /// The first attempt, or one that a person requested; callers wait for it.
    Connecting,
    Ready,
    /// Failed for this reason. It is retried periodically, and callers do not wait for it.
    Waiting(UpstreamFailure),
    /// A person must sign in first. It is not retried.
    NeedsLogin(UpstreamFailure),
    Stopped,
}

/// The reason that a server cannot be used. Callers see the reason. The server's own output is not
/// reviewed, so only operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamFailure {
    pub reason: String,
    pub said: Option<String>,
}

impl UpstreamFailure {
    pub fn new(reason: &str, said: Option<&str>) -> UpstreamFailure {
        let cut = |text: &str, bytes_max| text[..text.floor_char_boundary(bytes_max)].to_owned();
        UpstreamFailure {
            reason: cut(reason, REASON_BYTES_MAX),
            said: said.map(|said| cut(said, SAID_BYTES_MAX)),
        }
    }

    /// Appends a hint for operators.
    #[must_use]
    pub fn with_hint(self, hint: &str) -> UpstreamFailure {
        let said = self.said.unwrap_or_default() + hint;
        UpstreamFailure { said: (!said.is_empty()).then_some(said), ..self }
    }
}

impl From<String> for UpstreamFailure {
    fn from(reason: String) -> UpstreamFailure {
        UpstreamFailure::new(&reason, None)
    }
}

impl fmt::Display for UpstreamFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        self.said.iter().try_for_each(|said| write!(f, "; last output: {said}"))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum UpstreamEvent {
    Start,
    Connected,
    /// The attempt failed, or the connection was lost. `jitter` is drawn from 0.0 to 1.0.
    Failed {
        failure: UpstreamFailure,
        jitter: f64,
    },
    /// The server accepts no token that the gate has.
    LoginNeeded(UpstreamFailure),
    RetryDue,
    Restart,
    Stop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Connect,
    Disconnect,
    RetryAfter(Duration),
    /// The state changed and must be published.
    Publish,
}

pub struct UpstreamMachine {
    state: UpstreamState,
    failures: u32,
}

impl Default for UpstreamMachine {
    fn default() -> Self {
        UpstreamMachine { state: UpstreamState::Idle, failures: 0 }
    }
}

impl UpstreamMachine {
    pub fn state(&self) -> &UpstreamState {
        &self.state
    }

    pub fn on(&mut self, event: UpstreamEvent) -> Vec<Effect> {
        match (&self.state, event) {
            (UpstreamState::Stopped, _) => vec![],
            (_, UpstreamEvent::Stop) => self.go(UpstreamState::Stopped, &[Effect::Disconnect]),
            (UpstreamState::Idle, UpstreamEvent::Start) => {
                self.go(UpstreamState::Connecting, &[Effect::Connect])
            }
            (UpstreamState::Waiting(_), UpstreamEvent::RetryDue) => vec![Effect::Connect],
            (UpstreamState::Idle, UpstreamEvent::Restart) => {
                self.go(UpstreamState::Connecting, &[Effect::Connect])
            }
            (
                UpstreamState::Connecting
                | UpstreamState::Ready
                | UpstreamState::Waiting(_)
                | UpstreamState::NeedsLogin(_),
                UpstreamEvent::Restart,
            ) => {
                self.failures = 0;
                self.go(UpstreamState::Connecting, &[Effect::Disconnect, Effect::Connect])
            }
            (UpstreamState::Connecting | UpstreamState::Waiting(_), UpstreamEvent::Connected) => {
                self.failures = 0;
                self.go(UpstreamState::Ready, &[])
            }
            (
                UpstreamState::Connecting | UpstreamState::Ready | UpstreamState::Waiting(_),
                UpstreamEvent::Failed { failure, jitter },
            ) => {
                let wait = backoff(self.failures, jitter);
                self.failures = self.failures.saturating_add(1);
                self.go(
                    UpstreamState::Waiting(failure),
                    &[Effect::Disconnect, Effect::RetryAfter(wait)],
                )
            }
            (
                UpstreamState::Connecting | UpstreamState::Ready | UpstreamState::Waiting(_),
                UpstreamEvent::LoginNeeded(failure),
            ) => {
                self.failures = 0;
                self.go(UpstreamState::NeedsLogin(failure), &[Effect::Disconnect])
            }
            // Nothing is in progress that this event could refer to.
            (
                UpstreamState::Connecting | UpstreamState::Ready | UpstreamState::Waiting(_),
                UpstreamEvent::Start,
            )
            | (
                UpstreamState::Connecting | UpstreamState::Ready | UpstreamState::Idle,
                UpstreamEvent::RetryDue,
            )
            | (UpstreamState::Ready | UpstreamState::Idle, UpstreamEvent::Connected)
            | (UpstreamState::Idle, UpstreamEvent::Failed { .. } | UpstreamEvent::LoginNeeded(_))
            | (
                UpstreamState::NeedsLogin(_),
                UpstreamEvent::Start
                | UpstreamEvent::Connected
                | UpstreamEvent::Failed { .. }
                | UpstreamEvent::LoginNeeded(_)
                | UpstreamEvent::RetryDue,
            ) => vec![],
        }
    }

    fn go(&mut self, state: UpstreamState, effects: &[Effect]) -> Vec<Effect> {
        self.state = state;
        // Published first: closing a stubborn connection takes seconds.
        std::iter::once(Effect::Publish).chain(effects.iter().cloned()).collect()
    }
}

/// Doubles from the first delay to the longest and randomizes half of it, so that many servers that
/// failed together do not reconnect together.
fn backoff(failures: u32, jitter: f64) -> Duration {
    let full = BACKOFF_FIRST.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX);
    full.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone() -> UpstreamFailure {
        UpstreamFailure::new("gone", Some("bye"))
    }

    fn failed(jitter: f64) -> UpstreamEvent {
        UpstreamEvent::Failed { failure: gone(), jitter }
    }

    fn retry(effects: &[Effect]) -> Option<Duration> {
        effects.iter().find_map(|effect| match effect {
            Effect::RetryAfter(wait) => Some(*wait),
            _ => None,
        })
    }

    #[test]
    fn waits_double_up_to_a_bound_and_start_over_after_success() {
        let mut machine = UpstreamMachine::default();
        machine.on(UpstreamEvent::Start);
        let mut waits = Vec::new();
        for _ in 0..10 {
            waits.push(retry(&machine.on(failed(1.0))).unwrap());
            machine.on(UpstreamEvent::RetryDue);
        }
        assert_eq!(waits[0], BACKOFF_FIRST);
        assert_eq!(waits[1], BACKOFF_FIRST * 2);
        assert_eq!(waits[9], BACKOFF_MAX);
        machine.on(UpstreamEvent::Connected);
        assert_eq!(retry(&machine.on(failed(0.0))), Some(BACKOFF_FIRST / 2));
    }

    #[test]
    fn a_lost_connection_is_closed_and_tried_again() {
        let mut machine = UpstreamMachine::default();
        assert_eq!(machine.on(UpstreamEvent::Start), [Effect::Publish, Effect::Connect]);
        machine.on(UpstreamEvent::Connected);
        let effects = machine.on(failed(1.0));
        assert_eq!(effects[..2], [Effect::Publish, Effect::Disconnect]);
        assert_eq!(machine.state(), &UpstreamState::Waiting(gone()));
        assert_eq!(machine.on(UpstreamEvent::RetryDue), [Effect::Connect]);
        assert_eq!(machine.state(), &UpstreamState::Waiting(gone()), "the reason stays");
        assert_eq!(machine.on(UpstreamEvent::Connected), [Effect::Publish]);
        assert_eq!(machine.state(), &UpstreamState::Ready);
    }

    #[test]
    fn a_restart_starts_over_from_any_state() {
        let mut machine = UpstreamMachine::default();
        assert_eq!(machine.on(UpstreamEvent::Restart), [Effect::Publish, Effect::Connect]);
        for event in [UpstreamEvent::Connected, failed(1.0)] {
            machine.on(event);
            let effects = machine.on(UpstreamEvent::Restart);
            assert_eq!(effects, [Effect::Publish, Effect::Disconnect, Effect::Connect]);
            assert_eq!(machine.state(), &UpstreamState::Connecting);
        }
    }

    #[test]
    fn a_server_that_needs_a_sign_in_is_not_retried_until_a_restart() {
        for before in [None, Some(UpstreamEvent::Connected), Some(failed(1.0))] {
            let mut machine = UpstreamMachine::default();
            machine.on(UpstreamEvent::Start);
            before.map(|event| machine.on(event));
            let effects = machine.on(UpstreamEvent::LoginNeeded(gone()));
            assert_eq!(effects, [Effect::Publish, Effect::Disconnect]);
            assert_eq!(machine.state(), &UpstreamState::NeedsLogin(gone()));
            for event in [UpstreamEvent::RetryDue, UpstreamEvent::Start, failed(0.5)] {
                assert_eq!(machine.on(event), []);
            }
            let effects = machine.on(UpstreamEvent::Restart);
            assert_eq!(effects, [Effect::Publish, Effect::Disconnect, Effect::Connect]);
        }
    }

    #[test]
    fn unexpected_events_are_ignored_and_stop_is_final() {
        let mut machine = UpstreamMachine::default();
        for event in [UpstreamEvent::Connected, UpstreamEvent::RetryDue, failed(0.5)] {
            assert_eq!(machine.on(event), []);
        }
        machine.on(UpstreamEvent::Start);
        assert_eq!(machine.on(UpstreamEvent::Start), []);
        machine.on(UpstreamEvent::Stop);
        for event in [
            UpstreamEvent::Start,
            UpstreamEvent::Restart,
            UpstreamEvent::RetryDue,
            UpstreamEvent::Connected,
        ] {
            assert_eq!(machine.on(event), []);
        }
        assert_eq!(machine.state(), &UpstreamState::Stopped);
    }

    #[test]
    fn a_reason_and_what_the_server_said_are_bounded_and_apart() {
        assert_eq!(gone().to_string(), "gone; last output: bye");
        let long = "ä".repeat(100_000);
        let failure = UpstreamFailure::new(&long, Some(&long));
        assert_eq!(failure.reason.len(), REASON_BYTES_MAX);
        assert_eq!(failure.said.unwrap().len(), SAID_BYTES_MAX);
    }
}
