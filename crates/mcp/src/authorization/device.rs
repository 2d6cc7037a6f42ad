//! The device flow (RFC 8628): a person signs in on another machine, with a code.

use std::time::Duration;

use serde::Deserialize;
use url::Url;

use super::error::AuthorizationError;
use super::exchange::{IssuedTokens, TokenEndpoint, refusal};
use super::metadata::{place, shortened};
use super::secret::SecretText;

pub(super) const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

const DEVICE: &str = "device code";

/// The shortest and longest wait between two requests for the token.
const INTERVAL_MIN: Duration = Duration::from_secs(1);
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// The lifetime of a code, if the server states none or a longer one.
const LIFETIME_MAX: Duration = Duration::from_mins(30);

/// A code that waits for a person.
#[derive(Clone)]
pub struct DeviceCode {
    code: SecretText,
    /// The code that the person enters, and where.
    pub user_code: String,
    pub address: String,
    /// The address with the code in it, if the server gives one.
    pub whole_address: Option<String>,
    pub lifetime: Duration,
    pub interval: Duration,
}

/// The state of a device code.
pub enum DevicePoll {
    Issued(IssuedTokens),
    /// The person has not signed in yet: ask again after this time.
    Wait(Duration),
}

#[derive(Deserialize)]
struct WireDevice {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: Option<u64>,
    interval: Option<u64>,
}

impl TokenEndpoint {
    /// Requests a code.
    pub async fn device_code(
        &self,
        endpoint: &Url,
        scope: Option<&str>,
    ) -> Result<DeviceCode, AuthorizationError> {
        let mut fields: Vec<(&'static str, String)> = Vec::new();
        fields.extend(scope.map(|scope| ("scope", scope.to_owned())));
        fields.extend(self.resource.clone().map(|resource| ("resource", resource)));
        let fetched = self.post(DEVICE, endpoint, fields).await?;
        if !fetched.status.is_success() {
            return Err(refusal(DEVICE, endpoint, &fetched));
        }
        let wire: WireDevice = serde_json::from_slice(&fetched.body)
            .map_err(|error| AuthorizationError::invalid(DEVICE, place(&error)))?;
        let shown = |text: &str| {
            let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
            url.map(String::from)
                .ok_or_else(|| AuthorizationError::invalid(DEVICE, "its address is not a web page"))
        };
        let seconds = |given: Option<u64>, default| given.map_or(default, Duration::from_secs);
        Ok(DeviceCode {
            code: SecretText::new(wire.device_code),
            user_code: shortened(&wire.user_code),
            address: shown(&wire.verification_uri)?,
            whole_address: wire.verification_uri_complete.as_deref().map(shown).transpose()?,
            lifetime: seconds(wire.expires_in, LIFETIME_MAX).min(LIFETIME_MAX),
            interval: seconds(wire.interval, Duration::from_secs(5))
                .clamp(INTERVAL_MIN, INTERVAL_MAX),
        })
    }

    /// Asks whether the person has signed in.
    pub async fn poll(&self, device: &mut DeviceCode) -> Result<DevicePoll, AuthorizationError> {
        let issued = self.issue(vec![
            ("grant_type", GRANT.to_owned()),
            ("device_code", device.code.expose().to_owned()),
        ]);
        match issued.await {
            Ok(tokens) => Ok(DevicePoll::Issued(tokens)),
            Err(AuthorizationError::Refused { error, .. }) if error == "authorization_pending" => {
                Ok(DevicePoll::Wait(device.interval))
            }
            Err(AuthorizationError::Refused { error, .. }) if error == "slow_down" => {
                device.interval = (device.interval + Duration::from_secs(5)).min(INTERVAL_MAX);
                Ok(DevicePoll::Wait(device.interval))
            }
            // A moment without a network does not end the sign-in.
            Err(AuthorizationError::Unreachable { .. }) => Ok(DevicePoll::Wait(device.interval)),
            Err(error) => Err(error),
        }
    }
}
