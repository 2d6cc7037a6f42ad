//! The page for people, and its sign-in. The page uses this API like any other program of the
//! operator.

mod address;
pub(crate) mod door;
mod file;
pub mod session;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{AppendHeaders, IntoResponse, Response};
use domain::{Code, Refusal};
use gateway::front::visitor::Visitor;
use jiff::Timestamp;

pub use address::{GateAddress, other_loopback};
pub(crate) use file::{HTML, KINDS as FILE_KINDS};
pub use session::{PageLink, PageSessions};

use crate::Admin;
use crate::answer::{Path, Refused, RequestId};
use crate::body::{BodyMembers, required};
use crate::view::{EndedSessions, PageSession, SignInLink, moment};

/// The media type of the line that stands in for the page at other addresses.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

const ELSEWHERE: &str = "the page has another address: 'countersign page' prints a link to it";

const LINE: &str = "Countersign runs here. The page has another address: 'countersign page' prints a link to it.\n";

pub(crate) const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");

/// The kinds of data that others may have left: "storage" covers service workers. Cookies are not of
/// one port.
pub(crate) const LEFTOVERS: &str = "\"cache\", \"storage\"";

pub(crate) async fn index(
    State(admin): State<Admin>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    if !door::is_at_the_page(&admin, &headers) {
        let fixed = [(header::CONTENT_TYPE, TEXT), (header::CACHE_CONTROL, "no-store")];
        return Ok((fixed, LINE).into_response());
    }
    found(&admin, file::INDEX, &headers)
}

pub(crate) async fn file(
    State(admin): State<Admin>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    found(&admin, &name, &headers)
}

pub(crate) async fn file_in(
    State(admin): State<Admin>,
    Path((folder, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    found(&admin, &format!("{folder}/{name}"), &headers)
}

/// Has browsers drop what an earlier holder of the address left in them, wherever the page is not.
pub(crate) async fn drop_leftovers(
    State(admin): State<Admin>,
    request: Request,
    next: Next,
) -> Response {
    let is_page = door::is_at_the_page(&admin, request.headers());
    let is_api = request.uri().path().starts_with("/api/");
    let mut response = next.run(request).await;
    if !is_page && !is_api {
        let all = HeaderValue::from_static(LEFTOVERS);
        response.headers_mut().insert(CLEAR_SITE_DATA, all);
    }
    response
}

fn found(admin: &Admin, name: &str, headers: &HeaderMap) -> Result<Response, Refused> {
    if !door::is_at_the_page(admin, headers) {
        return Err(Refusal::new(Code::NotFound, ELSEWHERE).into());
    }
    file::answer(name, headers).ok_or_else(|| {
        Refusal::new(Code::NotFound, format!("the page has no file '{name}'")).into()
    })
}

/// Makes a link for a caller who may read the admin key.
pub(crate) async fn invite(
    State(admin): State<Admin>,
) -> Result<(StatusCode, Json<SignInLink>), Refused> {
    let link = admin.sessions.link(Timestamp::now())?;
    let answer = SignInLink { url: link.url, expires_at: moment(link.expires_at) };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Exchanges a code for a session: the cookie goes into the browser's jar, the token to the tab.
pub(crate) async fn enter(
    State(admin): State<Admin>,
    request: Request,
) -> Result<Response, Refused> {
    let headers = request.headers().clone();
    let address = Visitor::of(request.extensions()).address(&headers);
    let id = request.extensions().get::<RequestId>().map(|id| id.0.clone());
    if !door::is_at_the_page(&admin, &headers) {
        return Err(Refusal::new(Code::Forbidden, ELSEWHERE).into());
    }
    if !door::is_own(&headers) {
        return Err(door::foreign().into());
    }
    let mut body = BodyMembers::read(request).await?;
    let code = body.text("code")?;
    body.finish()?;
    let code = code.ok_or_else(|| required("code"))?;
    let entered = admin.sessions.enter(&code, door::cookie(&headers), Timestamp::now())?;
    let Some(entered) = entered else {
        admin.gateway.failed_entry(address, "page code").await;
        let message =
            "this link has expired or was already used: 'countersign page' prints a new one";
        return Err(Refusal::new(Code::Unauthorized, message).into());
    };
    admin.gateway.record_sign_in(address, id).await?;
    let cookie = door::set_cookie(&headers, &entered.cookie);
    let told = AppendHeaders([(header::SET_COOKIE, cookie), no_store()]);
    let answer = PageSession { token: entered.token, expires_at: moment(entered.until) };
    Ok((StatusCode::CREATED, told, Json(answer)).into_response())
}

fn no_store() -> (header::HeaderName, String) {
    (header::CACHE_CONTROL, "no-store".to_owned())
}

/// Signs every browser out.
pub(crate) async fn leave(State(admin): State<Admin>) -> Json<EndedSessions> {
    Json(EndedSessions { ended: admin.sessions.end_all(Timestamp::now()) })
}
