//! The life of a connection to a server, as a machine: events in, effects out. The driver that
//! connects, waits and restarts lives outside and holds no rule of its own.

use std::time::Duration;

/// First wait after a failure; doubled each time.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// Longest wait: a server that comes back is noticed within half a minute or so.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Switched off, or a lazy one that nobody has wanted yet.
    Idle,
    /// The first attempt, or one that a person asked for: worth waiting for.
    Connecting,
    Ready,
    /// Failed for this reason; it is tried again from time to time, and nobody waits for that.
    Waiting(String),
    Stopped,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Start,
    Connected,
    /// The attempt failed, or the connection was lost. `jitter` is drawn from 0.0 to 1.0.
    Failed {
        reason: String,
        jitter: f64,
    },
    RetryDue,
    Restart,
    Stop,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Connect,
    Disconnect,
    RetryAfter(Duration),
    /// The state changed and others should see it.
    Publish,
}

pub struct Machine {
    state: State,
    failures: u32,
}

impl Default for Machine {
    fn default() -> Self {
        Machine { state: State::Idle, failures: 0 }
    }
}

impl Machine {
    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn on(&mut self, event: Event) -> Vec<Effect> {
        match (&self.state, event) {
            (State::Stopped, _) => vec![],
            (_, Event::Stop) => self.go(State::Stopped, &[Effect::Disconnect]),
            (State::Idle, Event::Start) => self.go(State::Connecting, &[Effect::Connect]),
            (State::Waiting(_), Event::RetryDue) => vec![Effect::Connect],
            (State::Idle, Event::Restart) => self.go(State::Connecting, &[Effect::Connect]),
            (State::Connecting | State::Ready | State::Waiting(_), Event::Restart) => {
                self.failures = 0;
                self.go(State::Connecting, &[Effect::Disconnect, Effect::Connect])
            }
            (State::Connecting | State::Waiting(_), Event::Connected) => {
                self.failures = 0;
                self.go(State::Ready, &[])
            }
            (
                State::Connecting | State::Ready | State::Waiting(_),
                Event::Failed { reason, jitter },
            ) => {
                let wait = backoff(self.failures, jitter);
                self.failures = self.failures.saturating_add(1);
                self.go(State::Waiting(reason), &[Effect::Disconnect, Effect::RetryAfter(wait)])
            }
            // Nothing is under way that this could be news of.
            (State::Connecting | State::Ready | State::Waiting(_), Event::Start)
            | (State::Connecting | State::Ready | State::Idle, Event::RetryDue)
            | (State::Ready | State::Idle, Event::Connected)
            | (State::Idle, Event::Failed { .. }) => vec![],
        }
    }

    fn go(&mut self, state: State, effects: &[Effect]) -> Vec<Effect> {
        self.state = state;
        // Told first: to end a stubborn connection takes seconds.
        std::iter::once(Effect::Publish).chain(effects.iter().cloned()).collect()
    }
}

/// Doubles from the first wait to the longest, then a random half of it: many servers that fell
/// together do not come back together.
fn backoff(failures: u32, jitter: f64) -> Duration {
    let full = BACKOFF_FIRST.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX);
    full.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(jitter: f64) -> Event {
        Event::Failed { reason: "gone".to_owned(), jitter }
    }

    fn retry(effects: &[Effect]) -> Option<Duration> {
        effects.iter().find_map(|effect| match effect {
            Effect::RetryAfter(wait) => Some(*wait),
            _ => None,
        })
    }

    #[test]
    fn waits_double_up_to_a_bound_and_start_over_after_success() {
        let mut machine = Machine::default();
        machine.on(Event::Start);
        let mut waits = Vec::new();
        for _ in 0..10 {
            waits.push(retry(&machine.on(failed(1.0))).unwrap());
            machine.on(Event::RetryDue);
        }
        assert_eq!(waits[0], BACKOFF_FIRST);
        assert_eq!(waits[1], BACKOFF_FIRST * 2);
        assert_eq!(waits[9], BACKOFF_MAX);
        machine.on(Event::Connected);
        assert_eq!(retry(&machine.on(failed(0.0))), Some(BACKOFF_FIRST / 2));
    }

    #[test]
    fn a_lost_connection_is_closed_and_tried_again() {
        let mut machine = Machine::default();
        assert_eq!(machine.on(Event::Start), [Effect::Publish, Effect::Connect]);
        machine.on(Event::Connected);
        let effects = machine.on(failed(1.0));
        assert_eq!(effects[..2], [Effect::Publish, Effect::Disconnect]);
        assert_eq!(machine.state(), &State::Waiting("gone".to_owned()));
        assert_eq!(machine.on(Event::RetryDue), [Effect::Connect]);
        assert_eq!(machine.state(), &State::Waiting("gone".to_owned()), "the reason stays");
        assert_eq!(machine.on(Event::Connected), [Effect::Publish]);
        assert_eq!(machine.state(), &State::Ready);
    }

    #[test]
    fn a_restart_starts_over_from_any_state() {
        let mut machine = Machine::default();
        assert_eq!(machine.on(Event::Restart), [Effect::Publish, Effect::Connect]);
        for event in [Event::Connected, failed(1.0)] {
            machine.on(event);
            let effects = machine.on(Event::Restart);
            assert_eq!(effects, [Effect::Publish, Effect::Disconnect, Effect::Connect]);
            assert_eq!(machine.state(), &State::Connecting);
        }
    }

    #[test]
    fn news_of_nothing_changes_nothing_and_stop_is_final() {
        let mut machine = Machine::default();
        for event in [Event::Connected, Event::RetryDue, failed(0.5)] {
            assert_eq!(machine.on(event), []);
        }
        machine.on(Event::Start);
        assert_eq!(machine.on(Event::Start), []);
        machine.on(Event::Stop);
        for event in [Event::Start, Event::Restart, Event::RetryDue, Event::Connected] {
            assert_eq!(machine.on(event), []);
        }
        assert_eq!(machine.state(), &State::Stopped);
    }
}
