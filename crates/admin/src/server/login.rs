//! Signing in to servers: for the page, for the command line, and the address that the browser
//! returns to.

use axum::Json;
use axum::extract::{RawQuery, Request, State};
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use domain::{Code, Refusal};
use gateway::operator::{LoginInvitation, LoginProgress, LoginTarget};
use jiff::Timestamp;
use serde::Deserialize;
use text::visible;
use utoipa::IntoParams;

use super::entry;
use crate::Admin;
use crate::answer::{Path, Query, Refused};
use crate::body::{BodyMembers, required};
use crate::decision::{Decider, carry_out};
use crate::page::{CLEAR_SITE_DATA, LEFTOVERS};
use crate::view::{ServerEntry, ServerLogin, moment};

/// The path that the browser returns to.
pub(crate) const CALLBACK: &str = "/oauth/callback";

/// Begins a sign-in: in a browser, which returns to `redirect_uri` or to the gate itself, or with a
/// code.
pub(crate) async fn begin(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
    request: Request,
) -> Result<Json<ServerLogin>, Refused> {
    let mut body = BodyMembers::read_approval(request).await?;
    let redirect = body.text("redirect_uri")?;
    let is_device = body.flag("device")?.unwrap_or(false);
    let token = body.text("token")?;
    body.finish()?;
    let gateway = admin.gateway.clone();
    let target = LoginTarget { server: name.clone(), token: token.clone() };
    let origin = admin.sessions.address().clients().to_owned();
    let invitation = carry_out(async move {
        if is_device {
            return gateway.start_device_login(by, &target).await;
        }
        let redirect = match redirect {
            Some(redirect) => redirect,
            None => own_redirect(&origin)?,
        };
        gateway.start_login(by, &target, &redirect).await
    });
    let LoginInvitation { address, user_code, lifetime } = invitation.await?;
    let expires_at = Some(moment(Timestamp::now() + lifetime));
    let state = LoginProgress::Pending.as_str().to_owned();
    let address = Some(address);
    let begun = ServerLogin { name, token, state, address, user_code, ..ServerLogin::default() };
    Ok(Json(ServerLogin { expires_at, ..begun }))
}

#[derive(Deserialize, IntoParams)]
pub(crate) struct LoginQuery {
    /// The name of the agent token that signs in, where each signs in for itself.
    token: Option<String>,
}

/// Returns the address on this gate, if browsers on this machine reach it by plain HTTP.
fn own_redirect(origin: &str) -> Result<String, Refusal> {
    match origin.strip_prefix("http://127.0.0.1") {
        Some(port) if port.is_empty() || port.starts_with(':') => Ok(format!("{origin}{CALLBACK}")),
        Some(_) | None => Err(Refusal::new(
            Code::Conflict,
            "this gate does not listen on http://127.0.0.1, to which a sign-in returns: use \
             'countersign upstream login' on its machine",
        )),
    }
}

/// Reports how far the last sign-in to a server is.
pub(crate) async fn show(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Query(query): Query<LoginQuery>,
) -> Result<Json<ServerLogin>, Refused> {
    let target = LoginTarget { server: name.clone(), token: query.token };
    let progress = admin.gateway.login_progress(&target)?;
    let state = progress.as_ref().map_or("none", LoginProgress::as_str).to_owned();
    let error = match progress {
        Some(LoginProgress::Failed(reason)) => Some(reason),
        Some(LoginProgress::Pending | LoginProgress::Done) | None => None,
    };
    let redirect_uri = admin.gateway.login_redirect(&target).await.unwrap_or_default();
    let token = target.token;
    Ok(Json(ServerLogin { name, token, state, redirect_uri, error, ..ServerLogin::default() }))
}

/// Ends a sign-in that returned to the command line.
pub(crate) async fn finish(
    State(admin): State<Admin>,
    request: Request,
) -> Result<Json<ServerEntry>, Refused> {
    let mut body = BodyMembers::read(request).await?;
    let response = body.text("response")?;
    body.finish()?;
    let response = response.ok_or_else(|| required("response"))?;
    let gateway = admin.gateway.clone();
    let name = carry_out(async move { gateway.finish_login(&response).await }).await?;
    Ok(Json(entry(&admin, &name).await?))
}

pub(crate) async fn leave(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    Decider(by): Decider,
    request: Request,
) -> Result<Json<ServerEntry>, Refused> {
    let mut body = BodyMembers::read_approval(request).await?;
    let token = body.text("token")?;
    body.finish()?;
    let (gateway, target) = (admin.gateway.clone(), LoginTarget { server: name.clone(), token });
    carry_out(async move { gateway.logout(&by, &target).await }).await?;
    Ok(Json(entry(&admin, &name).await?))
}

/// The parameters of a response, which the authorization server chooses.
#[derive(Deserialize, IntoParams)]
#[expect(dead_code, reason = "the gateway reads the query itself, as strictly as OAuth demands")]
pub(crate) struct CallbackQuery {
    /// Identifies the sign-in.
    state: Option<String>,
    code: Option<String>,
    /// The authorization server.
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

/// Ends a sign-in that returned to the gate, and tells the person in the browser.
pub(crate) async fn callback(
    State(admin): State<Admin>,
    RawQuery(query): RawQuery,
) -> Result<Response, Refused> {
    let ending = async move { Ok(admin.gateway.finish_login(&query.unwrap_or_default()).await) };
    let outcome = carry_out(ending).await?;
    Ok(told(outcome.as_deref().map_err(|refusal| &*refusal.message)))
}

/// Builds the response that a browser shows after a sign-in: to a server, or failed for a reason.
/// Its address is a plain one of this machine, which other programs may have held before.
pub fn told(outcome: Result<&str, &str>) -> Response {
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        (CLEAR_SITE_DATA, LEFTOVERS),
    ];
    (fixed, Html(text(outcome))).into_response()
}

fn text(outcome: Result<&str, &str>) -> String {
    let (title, words) = match outcome {
        Ok(server) => {
            ("Signed in", format!("Signed in to '{}'. You can close this tab.", escaped(server)))
        }
        Err(reason) => (
            "Not signed in",
            format!("Not signed in: {}. Begin the sign-in again.", escaped(reason)),
        ),
    };
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title} - Countersign</title>\
         <body><h1>{title}</h1><p>{words}</p></body></html>"
    )
}

/// Escapes markup, and shows hidden characters by their code point.
fn escaped(text: &str) -> String {
    let text = visible(text).replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_words_becomes_markup() {
        let page = text(Err("<script>alert(\"1\")</script> & more"));
        assert!(
            page.contains("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; more"),
            "{page}"
        );
        assert!(text(Ok("linear")).contains("Signed in to 'linear'"));
    }

    #[test]
    fn a_sign_in_returns_to_the_loopback_address_alone() {
        for (origin, expected) in [
            ("http://127.0.0.1:7420", Some("http://127.0.0.1:7420/oauth/callback")),
            ("http://127.0.0.1", Some("http://127.0.0.1/oauth/callback")),
            ("http://127.0.0.2:7420", None),
            ("http://127.0.0.10", None),
            ("http://[::1]:7420", None),
            ("https://127.0.0.1:7420", None),
            ("https://gate.example", None),
        ] {
            assert_eq!(own_redirect(origin).ok().as_deref(), expected, "{origin}");
        }
    }

    #[test]
    fn what_hides_in_the_words_is_named() {
        let page = text(Err("denied\u{202e}\u{200b}\u{1b}[31m\u{e0041}, für Ünser"));
        let expected = "denied⟨U+202E⟩⟨U+200B⟩⟨U+001B⟩[31m⟨U+E0041⟩, für Ünser";
        assert!(page.contains(expected), "{page}");
    }
}
