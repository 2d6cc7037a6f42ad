//! Every route of the API in one list, from which the router is made.

use axum::Router;
use axum::routing::{MethodFilter, on};

use crate::{
    Admin, activity, call, contention, events, metrics, probe, receipt, run, server, status, token,
    tool,
};

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever reaches the listener: it tells no more than whether the gate works.
    Anyone,
    Admin,
}

#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub method: &'static str,
    /// Parts in braces stand for any text.
    pub path: &'static str,
    pub access: Access,
}

macro_rules! routes {
    ($($access:ident $name:ident $into:ident {
        $($method:ident $path:literal $answer:expr,)*
    })*) => {
        $(
            const $name: &[Route] = &[$(Route {
                method: stringify!($method),
                path: $path,
                access: Access::$access,
            }),*];

            pub(crate) fn $into() -> Router<Admin> {
                Router::new()$(.route($path, on(MethodFilter::$method, $answer)))*
            }
        )*
    };
}

routes! {
    Anyone OPEN open {
        GET "/healthz" probe::lives,
        GET "/readyz" probe::is_ready,
    }
    Admin CLOSED closed {
        GET "/metrics" metrics::show,
        GET "/api/v1/status" status::show,
        GET "/api/v1/servers" server::list,
        POST "/api/v1/servers" server::change::add,
        GET "/api/v1/servers/{name}" server::show,
        DELETE "/api/v1/servers/{name}" server::change::remove,
        POST "/api/v1/servers/{name}/enable" server::change::enable,
        POST "/api/v1/servers/{name}/disable" server::change::disable,
        POST "/api/v1/servers/{name}/quarantine" server::change::quarantine,
        POST "/api/v1/servers/{name}/approve" server::change::approve,
        GET "/api/v1/servers/{name}/items" server::items,
        POST "/api/v1/servers/{name}/approve-items" server::change::approve_items,
        GET "/api/v1/servers/{name}/logs" server::logs,
        POST "/api/v1/servers/{name}/restart" server::restart,
        GET "/api/v1/tools" tool::list,
        POST "/api/v1/tools/call" call::make,
        GET "/api/v1/tools/{server}/{tool}" tool::show,
        POST "/api/v1/tools/{server}/{tool}/approve" tool::change::approve,
        POST "/api/v1/tools/{server}/{tool}/enable" tool::change::enable,
        POST "/api/v1/tools/{server}/{tool}/disable" tool::change::disable,
        GET "/api/v1/tokens" token::list,
        POST "/api/v1/tokens" token::make,
        DELETE "/api/v1/tokens/{name}" token::revoke,
        GET "/api/v1/activity" activity::list,
        GET "/api/v1/activity/export" activity::export,
        GET "/api/v1/activity/summary" activity::summary,
        GET "/api/v1/activity/{id}" activity::show,
        GET "/api/v1/receipts" receipt::list,
        GET "/api/v1/receipts/export" receipt::export,
        GET "/api/v1/receipts/{id}" receipt::show,
        GET "/api/v1/chains" receipt::chains,
        GET "/api/v1/chains/{id}/verify" receipt::verify,
        GET "/api/v1/keys" receipt::keys,
        POST "/api/v1/keys/rotate" receipt::rotate,
        GET "/api/v1/contention" contention::show,
        GET "/api/v1/runs" run::list,
        GET "/api/v1/runs/{id}" run::show,
        GET "/api/v1/events" events::stream,
    }
}

/// Every route.
pub fn all() -> impl Iterator<Item = &'static Route> {
    OPEN.iter().chain(CLOSED)
}
