//! Every route of the API in one list, from which the router is made, and the document that
//! describes it.

use axum::Router;
use axum::routing::{MethodFilter, on};

use crate::openapi::operation::Operation;
use crate::{
    Admin, activity, call, contention, copy, events, metrics, openapi, page, probe, receipt, run,
    server, status, token, tool,
};

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever reaches the listener: it tells no more than whether the gate works, and has the
    /// files of the page, which hold nothing of anybody.
    Anyone,
    /// Whoever holds the code of a link: it is what signs a browser in.
    Code,
    Admin,
}

#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub method: &'static str,
    /// Parts in braces stand for any text.
    pub path: &'static str,
    pub access: Access,
    /// Which function answers.
    pub(crate) handler: &'static str,
    pub(crate) described: fn() -> Operation,
}

macro_rules! routes {
    ($($access:ident $name:ident $into:ident {
        $($method:ident $path:literal $answer:expr => $described:expr,)*
    })*) => {
        $(
            const $name: &[Route] = &[$(Route {
                method: stringify!($method),
                path: $path,
                access: Access::$access,
                handler: stringify!($answer),
                described: $described,
            }),*];

            pub(crate) fn $into() -> Router<Admin> {
                Router::new()$(.route($path, on(MethodFilter::$method, $answer)))*
            }
        )*
    };
}

routes! {
    Anyone OPEN open {
        GET "/healthz" probe::lives => status::openapi::lives,
        GET "/readyz" probe::is_ready => status::openapi::is_ready,
        GET "/" page::index => page::openapi::index,
        GET "/page/{file}" page::file => page::openapi::file,
        GET "/page/{folder}/{file}" page::file_in => page::openapi::file_in,
    }
    Code ENTRY entry {
        POST "/api/v1/page/session" page::enter => page::openapi::enter,
    }
    Admin CLOSED closed {
        GET "/metrics" metrics::show => status::openapi::metrics,
        GET "/api/v1/openapi.json" openapi::show => openapi::described,
        GET "/api/v1/status" status::show => status::openapi::show,
        GET "/api/v1/servers" server::list => server::openapi::list,
        POST "/api/v1/servers" server::change::add => server::openapi::add,
        GET "/api/v1/servers/{name}" server::show => server::openapi::show,
        DELETE "/api/v1/servers/{name}" server::change::remove => server::openapi::remove,
        POST "/api/v1/servers/{name}/enable" server::change::enable => server::openapi::enable,
        POST "/api/v1/servers/{name}/disable" server::change::disable => server::openapi::disable,
        POST "/api/v1/servers/{name}/quarantine"
            server::change::quarantine => server::openapi::quarantine,
        POST "/api/v1/servers/{name}/approve" server::change::approve => server::openapi::approve,
        GET "/api/v1/servers/{name}/items" server::items => server::openapi::items,
        POST "/api/v1/servers/{name}/approve-items"
            server::change::approve_items => server::openapi::approve_items,
        GET "/api/v1/servers/{name}/logs" server::logs => server::openapi::logs,
        POST "/api/v1/servers/{name}/restart" server::restart => server::openapi::restart,
        GET "/api/v1/tools" tool::list => tool::openapi::list,
        POST "/api/v1/tools/call" call::make => call::openapi::make,
        GET "/api/v1/tools/{server}/{tool}" tool::show => tool::openapi::show,
        POST "/api/v1/tools/{server}/{tool}/approve"
            tool::change::approve => tool::openapi::approve,
        POST "/api/v1/tools/{server}/{tool}/enable" tool::change::enable => tool::openapi::enable,
        POST "/api/v1/tools/{server}/{tool}/disable"
            tool::change::disable => tool::openapi::disable,
        GET "/api/v1/tokens" token::list => token::openapi::list,
        POST "/api/v1/tokens" token::make => token::openapi::make,
        DELETE "/api/v1/tokens/{name}" token::revoke => token::openapi::revoke,
        GET "/api/v1/activity" activity::list => activity::openapi::list,
        GET "/api/v1/activity/export" activity::export => activity::openapi::export,
        GET "/api/v1/activity/summary" activity::summary => activity::openapi::summary,
        GET "/api/v1/activity/{id}" activity::show => activity::openapi::show,
        GET "/api/v1/receipts" receipt::list => receipt::openapi::list,
        GET "/api/v1/receipts/export" receipt::export => receipt::openapi::export,
        GET "/api/v1/receipts/{id}" receipt::show => receipt::openapi::show,
        GET "/api/v1/chains" receipt::chains => receipt::openapi::chains,
        GET "/api/v1/chains/verify" receipt::verify_all => receipt::openapi::verify_all,
        GET "/api/v1/chains/{id}/verify" receipt::verify => receipt::openapi::verify,
        GET "/api/v1/copies" copy::list => copy::openapi::list,
        GET "/api/v1/copies/{name}/verify" copy::verify => copy::openapi::verify,
        GET "/api/v1/keys" receipt::keys => receipt::openapi::keys,
        POST "/api/v1/keys/rotate" receipt::rotate => receipt::openapi::rotate,
        GET "/api/v1/contention" contention::show => contention::openapi::show,
        GET "/api/v1/runs" run::list => run::openapi::list,
        GET "/api/v1/runs/{id}" run::show => run::openapi::show,
        GET "/api/v1/events" events::stream => events::openapi::stream,
        POST "/api/v1/page/codes" page::invite => page::openapi::invite,
        DELETE "/api/v1/page/sessions" page::leave => page::openapi::leave,
    }
}

/// Every route.
pub fn all() -> impl Iterator<Item = &'static Route> {
    OPEN.iter().chain(ENTRY).chain(CLOSED)
}
