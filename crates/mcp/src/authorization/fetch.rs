//! Single bounded requests: no redirects, a limit on time and size, and only to allowed addresses.

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::{Url, form_urlencoded};

use super::error::AuthorizationError;
use crate::http::AddressRule;
use crate::http::address::{TOO_NEAR, is_loopback};
use crate::http::target::HttpTarget;
use crate::limits;

/// A response, whatever its status.
pub(super) struct Fetched {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fetcher {
    pub(super) addresses: AddressRule,
}

impl Fetcher {
    /// Parses an address that a server named. It must be https and no nearer than the server is; on
    /// this machine, where an allowed server is, plain http will do.
    pub(super) fn address(
        &self,
        what: &'static str,
        text: &str,
    ) -> Result<Url, AuthorizationError> {
        let unfit = |reason| AuthorizationError::Address { what, reason };
        let url = Url::parse(text).map_err(|_| unfit("it is not a URL"))?;
        let is_near = self.addresses == AddressRule::Any && is_loopback(&url);
        match url.scheme() {
            "https" => {}
            "http" if is_near => {}
            "http" => return Err(unfit("it is plain http")),
            _ => return Err(unfit("it is neither http nor https")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(unfit("it holds a user name"));
        }
        if !url.has_host() || url.fragment().is_some() {
            return Err(unfit("it has no host, or a fragment"));
        }
        if !self.addresses.allows_host(&url) {
            return Err(unfit(TOO_NEAR));
        }
        Ok(url)
    }

    pub(super) async fn get(
        &self,
        what: &'static str,
        url: &Url,
    ) -> Result<Fetched, AuthorizationError> {
        self.send(what, url, (Method::GET, HeaderMap::new(), Bytes::new())).await
    }

    pub(super) async fn post_json(
        &self,
        what: &'static str,
        url: &Url,
        body: Vec<u8>,
    ) -> Result<Fetched, AuthorizationError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(what, url, (Method::POST, headers, body.into())).await
    }

    pub(super) async fn post_form(
        &self,
        what: &'static str,
        url: &Url,
        fields: &[(&'static str, String)],
        login: Option<HeaderValue>,
    ) -> Result<Fetched, AuthorizationError> {
        let mut headers = HeaderMap::new();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(CONTENT_TYPE, form);
        headers.extend(login.map(|login| (AUTHORIZATION, login)));
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.send(what, url, (Method::POST, headers, body.into())).await
    }

    async fn send(
        &self,
        what: &'static str,
        url: &Url,
        (method, more, body): (Method, HeaderMap, Bytes),
    ) -> Result<Fetched, AuthorizationError> {
        let host = url.host_str().unwrap_or("?").to_owned();
        let unreachable =
            |cause| AuthorizationError::Unreachable { what, host: host.clone(), cause };
        let sending = async {
            let target = HttpTarget::within(self.addresses, url.clone(), HeaderMap::new())
                .map_err(unreachable)?;
            let mut headers = target.headers().clone();
            headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
            headers.extend(more);
            let response = target.send(method, headers, body).await.map_err(unreachable)?;
            if response.status().is_redirection() {
                let to = target.elsewhere(&response);
                return Err(AuthorizationError::Redirect { what, host: host.clone(), to });
            }
            let status = response.status();
            let mut response = response;
            let mut body = BytesMut::new();
            while let Some(chunk) =
                response.chunk().await.map_err(|e| unreachable(e.to_string()))?
            {
                if body.len() + chunk.len() > limits::AUTHORIZATION_BYTES_MAX {
                    return Err(AuthorizationError::TooLong(what));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(Fetched { status, body: body.freeze() })
        };
        let late = || unreachable("it did not answer in time".to_owned());
        let fetched = tokio::time::timeout(limits::AUTHORIZATION_TIMEOUT, sending).await;
        fetched.unwrap_or_else(|_| Err(late()))
    }
}
