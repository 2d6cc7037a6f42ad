//! Authorization as a client, against authorization servers that misbehave.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, stream};
use mcp::authorization::{
    AuthorizationError, AuthorizationRequest, CallbackParameters, ClientChoice, DevicePoll,
    ProtectedServer, SecretText, ServerAuthorization, TokenEndpoint,
};
use mcp::http::Challenge;
use mcp::http::client::{Endpoint, connect};
use mcp::http::credentials::{Credentials, TokenRefusal};
use mcp::peer::{Ask, RequestError};
use mcp::server::Server;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// A web server with a scripted response for each path, which records its requests.
struct Site {
    base: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    async fn start<F>(answer: F) -> Site
    where
        F: Fn(&str, &str) -> Response + Clone + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (own, noted) = (base.clone(), asked.clone());
        let router = Router::new().fallback(move |request: Request| {
            let token = request.headers().get(header::AUTHORIZATION);
            let token = token.map_or("", |token| token.to_str().unwrap());
            let path = request.uri().path().to_owned();
            noted.lock().unwrap().push(format!("{path} {token}").trim().to_owned());
            let response = answer(&own, &path);
            async move { response }
        });
        tokio::spawn(axum::serve(listener, router).into_future());
        Site { base, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    async fn discover(&self) -> Result<ServerAuthorization, AuthorizationError> {
        let server = ProtectedServer::new(&format!("{}/mcp", self.base), None).await.unwrap();
        server.discover(&Challenge::default()).await
    }
}

fn json_of(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn missing() -> Response {
    StatusCode::NOT_FOUND.into_response()
}

/// The metadata of a well-behaved pair, changed by `change`.
fn metadata(base: &str, path: &str, change: &Value) -> Response {
    let mut value = match path {
        "/.well-known/oauth-protected-resource/mcp" => {
            json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]})
        }
        "/.well-known/oauth-authorization-server" => json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "code_challenge_methods_supported": ["S256"],
        }),
        _ => return missing(),
    };
    for (name, member) in change.as_object().unwrap() {
        if value.get(name).is_some() || path.ends_with("server") {
            value[name] = member.clone();
        }
    }
    json_of(&value)
}

#[tokio::test]
async fn metadata_that_leads_astray_is_refused() {
    type Expected = fn(&AuthorizationError) -> bool;
    let address: Expected = |error| matches!(error, AuthorizationError::Address { .. });
    let cases: [(Value, Expected); 9] = [
        (json!({"authorization_endpoint": "javascript:alert(1)"}), address),
        (json!({"authorization_endpoint": "file:///etc/passwd"}), address),
        (json!({"token_endpoint": "http://as.example/token"}), address),
        (json!({"registration_endpoint": "ftp://as.example/"}), address),
        (json!({"token_endpoint": "https://me:pw@as.example/"}), address),
        (json!({"issuer": "https://evil.example"}), |error| {
            matches!(error, AuthorizationError::Issuer { .. })
        }),
        (json!({"resource": "https://evil.example/mcp"}), |error| {
            matches!(error, AuthorizationError::Resource { .. })
        }),
        (json!({"authorization_servers": ["javascript:alert(1)"]}), address),
        (json!({"token_endpoint": 7}), |error| matches!(error, AuthorizationError::Invalid { .. })),
    ];
    for (change, expected) in cases {
        let shown = change.to_string();
        let site = Site::start(move |base, path| metadata(base, path, &change)).await;
        let error = site.discover().await.unwrap_err();
        assert!(expected(&error), "{shown}: {error}");
    }
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let elsewhere = Site::start(|base, path| metadata(base, path, &json!({}))).await;
    let to = HeaderValue::from_str(&format!("{}/.well-known/x", elsewhere.base)).unwrap();
    let site = Site::start(move |base, path| match path {
        "/.well-known/oauth-authorization-server" => {
            (StatusCode::FOUND, [(header::LOCATION, to.clone())]).into_response()
        }
        path => metadata(base, path, &json!({})),
    })
    .await;
    let error = site.discover().await.unwrap_err();
    assert!(matches!(error, AuthorizationError::Redirect { .. }), "{error}");
    assert_eq!(elsewhere.asked(), [""; 0]);
}

#[tokio::test]
async fn endless_metadata_is_cut_off() {
    let site = Site::start(|_, _| {
        let chunks =
            stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 65_536])));
        Body::from_stream(chunks).into_response()
    })
    .await;
    let error = site.discover().await.unwrap_err();
    assert!(matches!(error, AuthorizationError::TooLong(_)), "{error}");
}

#[tokio::test]
async fn only_a_few_authorization_servers_are_tried() {
    let site = Site::start(|base, path| {
        let many: Vec<String> = (0..1000).map(|number| format!("{base}/as{number}")).collect();
        match path {
            "/.well-known/oauth-protected-resource/mcp" => {
                json_of(&json!({"resource": format!("{base}/mcp"), "authorization_servers": many}))
            }
            _ => missing(),
        }
    })
    .await;
    let error = site.discover().await.unwrap_err();
    assert!(matches!(error, AuthorizationError::NoMetadata), "{error}");
    assert!(site.asked().len() < 20, "{:?}", site.asked());
}

#[tokio::test]
async fn without_pkce_nobody_is_sent_to_sign_in() {
    let none = json!({"code_challenge_methods_supported": ["plain"]});
    let site = Site::start(move |base, path| metadata(base, path, &none)).await;
    let (endpoint, found) = endpoint(&site).await;
    let redirect = "http://127.0.0.1:1/callback";
    let refused = AuthorizationRequest::new(&found, endpoint.clone(), redirect, &[], false);
    assert!(matches!(refused, Err(AuthorizationError::NoPkce)));
    assert!(AuthorizationRequest::new(&found, endpoint, redirect, &[], true).is_ok());
}

/// A hostile server may name the page of an honest one, with parameters of its choice.
#[tokio::test]
async fn an_authorization_page_gets_our_parameters_alone() {
    let site = Site::start(|base, path| {
        let brought = "tenant=t&redirect_uri=https%3A%2F%2Fevil.example&client_id=evil&state=known";
        let page = format!("{base}/authorize?{brought}&code_challenge_method=plain");
        metadata(base, path, &json!({"authorization_endpoint": page}))
    })
    .await;
    let (endpoint, found) = endpoint(&site).await;
    let redirect = "http://127.0.0.1:1/callback";
    let request = AuthorizationRequest::new(&found, endpoint, redirect, &[], false).unwrap();
    for (name, expected) in [
        ("tenant", "t"),
        ("redirect_uri", redirect),
        ("client_id", "c"),
        ("state", &request.state),
        ("code_challenge_method", "S256"),
    ] {
        let values: Vec<_> = request.url.query_pairs().filter(|(it, _)| it == name).collect();
        assert_eq!(values.iter().map(|(_, value)| &**value).collect::<Vec<_>>(), [expected]);
    }
}

async fn endpoint(site: &Site) -> (TokenEndpoint, ServerAuthorization) {
    let server = ProtectedServer::new(&format!("{}/mcp", site.base), None).await.unwrap();
    let found = server.discover(&Challenge::default()).await.unwrap();
    let choice = ClientChoice { id: Some("c".to_owned()), ..ClientChoice::default() };
    let client = choice.identity(&found.server).unwrap();
    (server.endpoint(&found, client, Some(found.resource.clone())), found)
}

/// Some authorization servers reject the parameter, such as Microsoft Entra.
#[tokio::test]
async fn the_server_is_named_in_each_request_unless_it_is_switched_off() {
    for is_named in [true, false] {
        let bodies: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = bodies.clone();
        let router = Router::new().fallback(move |body: String| {
            noted.lock().unwrap().push(body);
            async { json_of(&json!({"access_token": "at", "token_type": "Bearer"})) }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let token = format!("http://{}/token", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, router).into_future());
        let change = json!({"token_endpoint": token});
        let site = Site::start(move |base, path| metadata(base, path, &change)).await;
        let (mut endpoint, found) = endpoint(&site).await;
        endpoint.resource = endpoint.resource.filter(|_| is_named);
        let redirect = "http://127.0.0.1:1/callback";
        let request = AuthorizationRequest::new(&found, endpoint.clone(), redirect, &[], false);
        let request = request.unwrap();
        assert_eq!(request.url.query_pairs().any(|(name, _)| name == "resource"), is_named);
        let response = format!("code=right&state={}", request.state);
        request.finish(&CallbackParameters::parse(&response).unwrap()).await.unwrap();
        endpoint.refresh(&SecretText::new("rt")).await.unwrap();
        let bodies = bodies.lock().unwrap();
        assert_eq!(bodies.len(), 2);
        assert!(bodies.iter().all(|body| body.contains("resource=") == is_named), "{bodies:?}");
    }
}

#[tokio::test]
async fn a_response_that_is_not_ours_reaches_no_token_endpoint() {
    let named = json!({"authorization_response_iss_parameter_supported": true});
    let site = Site::start(move |base, path| match path {
        "/token" => json_of(&json!({"access_token": "at", "token_type": "Bearer"})),
        path => metadata(base, path, &named),
    })
    .await;
    let (endpoint, found) = endpoint(&site).await;
    let redirect = "http://127.0.0.1:1/callback";
    let request = AuthorizationRequest::new(&found, endpoint, redirect, &[], false).unwrap();
    let (state, issuer) = (&request.state, &site.base);
    for response in [
        format!("code=injected&state=guessed&iss={issuer}"),
        format!("code=injected&iss={issuer}"),
        format!("code=injected&state={state}"),
        format!("code=injected&state={state}&iss=https://evil.example"),
        format!("code=injected&state={state}&iss={issuer}/"),
        format!("state={state}&iss={issuer}"),
        format!("error=access_denied&state={state}&iss={issuer}&code=injected"),
    ] {
        let response = CallbackParameters::parse(&response).unwrap();
        assert!(request.finish(&response).await.is_err(), "{:?}", response.state);
    }
    assert!(CallbackParameters::parse(&format!("code=a&code=b&state={state}")).is_err());
    assert!(!site.asked().iter().any(|path| path.starts_with("/token")), "{:?}", site.asked());
    let response = format!("code=right&state={state}&iss={issuer}");
    let issued = request.finish(&CallbackParameters::parse(&response).unwrap()).await.unwrap();
    assert_eq!(issued.access.expose(), "at");
}

#[tokio::test]
async fn the_words_of_an_authorization_server_are_cut_and_printable() {
    let site = Site::start(|base, path| match path {
        "/token" => {
            let words = format!("\u{1b}[31m{}", "x".repeat(10_000));
            let body = json!({"error": "invalid_grant", "error_description": words});
            (StatusCode::BAD_REQUEST, body.to_string()).into_response()
        }
        path => metadata(base, path, &json!({})),
    })
    .await;
    let (endpoint, _) = endpoint(&site).await;
    let error = endpoint.client_credentials(None).await.map(|_| ()).unwrap_err();
    assert!(error.ends_grant());
    let words = error.to_string();
    assert!(words.len() < 500 && !words.contains('\u{1b}'), "{words}");
}

/// Answers the requests for a device code and then for its token, the latter as scripted.
async fn device_site(answers: &'static [&'static str], interval: Value) -> Site {
    let asked = Arc::new(Mutex::new(answers.iter()));
    Site::start(move |base, path| match path {
        "/device" => {
            json_of(&json!({"device_code": "dc", "user_code": "AB-CD", "interval": interval,
            "verification_uri": format!("{base}/enter"), "expires_in": 600}))
        }
        "/token" => match *asked.lock().unwrap().next().unwrap() {
            "issued" => json_of(&json!({"access_token": "at", "token_type": "Bearer"})),
            error => {
                let body = json!({"error": error}).to_string();
                (StatusCode::BAD_REQUEST, body).into_response()
            }
        },
        path => metadata(base, path, &json!({})),
    })
    .await
}

#[tokio::test]
async fn a_device_code_is_asked_for_as_often_as_the_server_allows() {
    // The answers, the waits in seconds that follow from them, and whether a token is issued at last.
    type Script = (&'static [&'static str], &'static [Option<u64>], bool);
    let scripts: [Script; 5] = [
        (&["authorization_pending", "issued"], &[Some(2)], true),
        // Each request to slow down adds five seconds, for good.
        (
            &["slow_down", "authorization_pending", "slow_down", "issued"],
            &[Some(7), Some(7), Some(12)],
            true,
        ),
        (&["expired_token"], &[None], false),
        (&["authorization_pending", "access_denied"], &[Some(2), None], false),
        (&["invalid_client"], &[None], false),
    ];
    for (answers, waits, is_issued) in scripts {
        let site = device_site(answers, json!(2)).await;
        let (endpoint, _) = endpoint(&site).await;
        let page = format!("{}/device", site.base).parse().unwrap();
        let mut code = endpoint.device_code(&page, None).await.unwrap();
        assert_eq!((code.user_code.as_str(), code.lifetime.as_secs()), ("AB-CD", 600));
        for wait in waits {
            let poll = endpoint.poll(&mut code).await;
            let asked = match &poll {
                Ok(DevicePoll::Wait(wait)) => Some(wait.as_secs()),
                Ok(DevicePoll::Issued(_)) | Err(_) => None,
            };
            assert_eq!((asked, poll.is_err()), (*wait, wait.is_none()), "{answers:?}");
        }
        if is_issued {
            let poll = endpoint.poll(&mut code).await.unwrap();
            assert!(matches!(poll, DevicePoll::Issued(tokens) if tokens.access.expose() == "at"));
        }
    }
}

#[tokio::test]
async fn the_pace_of_a_device_code_is_bounded() {
    for (interval, expected) in [(json!(0), 1), (json!(null), 5), (json!(1_000_000), 60)] {
        let site = device_site(&["slow_down"], interval).await;
        let (endpoint, _) = endpoint(&site).await;
        let page = format!("{}/device", site.base).parse().unwrap();
        let code = endpoint.device_code(&page, None).await.unwrap();
        assert_eq!(code.interval.as_secs(), expected);
    }
}

/// Hands out `first`, and `second` after a refusal.
struct Scripted {
    refused: Mutex<Vec<(String, bool)>>,
    is_stubborn: bool,
}

impl Credentials for Scripted {
    fn token(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, String>> {
        let is_first = self.refused.lock().unwrap().is_empty() || self.is_stubborn;
        let token = if is_first { "Bearer first" } else { "Bearer second" };
        async move { Ok(Some(HeaderValue::from_static(token))) }.boxed()
    }

    fn refused<'a>(&'a self, refusal: TokenRefusal<'a>) -> BoxFuture<'a, Result<(), String>> {
        let sent = refusal.sent.unwrap().to_str().unwrap().to_owned();
        self.refused.lock().unwrap().push((sent, refusal.is_second));
        let outcome = if refusal.is_second { Err("sign in first".to_owned()) } else { Ok(()) };
        async move { outcome }.boxed()
    }
}

#[tokio::test]
async fn a_refused_token_is_replaced_once_and_no_more() {
    for is_stubborn in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let answer = |request: Request| async move {
            let token = request.headers()[header::AUTHORIZATION].clone();
            if token != "Bearer second" {
                return StatusCode::UNAUTHORIZED.into_response();
            }
            json_of(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
        };
        tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
        let source = Arc::new(Scripted { refused: Mutex::default(), is_stubborn });
        let credentials: Arc<dyn Credentials> = source.clone();
        let endpoint = Endpoint { credentials: Some(credentials), ..Endpoint::new(url) };
        let peer = connect(endpoint, Arc::new(Server::new("client", "1"))).unwrap();
        let ask = Ask::new("ping", None, std::time::Duration::from_secs(20));
        let outcome = peer.request(ask).await;
        let refused = source.refused.lock().unwrap().clone();
        let first = ("Bearer first".to_owned(), false);
        if is_stubborn {
            assert!(
                matches!(&outcome, Err(RequestError::Unauthorized(words)) if words == "sign in first")
            );
            assert_eq!(refused, [first, ("Bearer first".to_owned(), true)]);
        } else {
            assert_eq!(outcome.unwrap().get(), "{}");
            assert_eq!(refused, [first]);
        }
    }
}
