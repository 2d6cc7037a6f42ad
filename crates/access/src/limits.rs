//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Interval at which sessions check whether their token has expired: the machine may have slept.
pub const TOKEN_LOOK_EVERY: Duration = Duration::from_secs(60);

/// Interval at which a server that needs a sign-in is checked for one in another process.
pub(crate) const LOGIN_LOOK_EVERY: Duration = Duration::from_secs(2);

/// Time for which a sign-in to a server counts as impossible: each of its refusals would otherwise
/// cost a search for metadata.
pub(crate) const LOGIN_LACK_KEPT: Duration = Duration::from_secs(60);

/// Time before a token is renewed again after the authorization server could not be reached: many
/// calls may want it at once.
pub(crate) const RENEWAL_RETRY: Duration = Duration::from_secs(5);

/// Random bytes in a token, too many to guess.
pub(crate) const TOKEN_BYTES: usize = 32;
