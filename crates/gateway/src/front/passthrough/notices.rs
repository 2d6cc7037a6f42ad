//! The notifications of servers that a client gets. In the view over all servers they are those of
//! the protocol, with addresses that lead back to their server; a server's own do not pass.

use std::sync::PoisonError;

use domain::exposed::{self, AddressForm};
use mcp::message::{Notification, raw};
use mcp::object::ObjectMembers;

use crate::front::session::{HeardServers, SessionRights};

const UPDATED: &str = "notifications/resources/updated";

/// Notifications that pass unchanged in the view over all servers.
const PASSED: [&str; 2] = ["notifications/message", ELICITATION_COMPLETE];

const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

impl SessionRights {
    /// Returns a notification as the client gets it; `None` if it gets none.
    pub(in crate::front) fn passed(
        &self,
        server: &str,
        notification: Notification,
    ) -> Option<Notification> {
        match self.heard() {
            HeardServers::Elicitations => {
                Some(notification).filter(|it| it.method == ELICITATION_COMPLETE)
            }
            HeardServers::One(_) => Some(notification),
            HeardServers::All if notification.method == UPDATED => {
                Some(self.addressed(server, notification))
            }
            HeardServers::All => {
                PASSED.contains(&notification.method.as_str()).then_some(notification)
            }
        }
    }

    /// Notes how the client addressed a resource that it subscribed to.
    pub(super) fn subscribed(&self, server: &str, uri: &str, is_qualified: bool) {
        let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        subscribed.insert((server.to_owned(), uri.to_owned()), is_qualified);
    }

    pub(super) fn unsubscribed(&self, server: &str, uri: &str) {
        let mut subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        subscribed.remove(&(server.to_owned(), uri.to_owned()));
    }

    /// Addresses an update as the client addressed its subscription, even if the address has come to
    /// lead to several servers since.
    fn addressed(&self, server: &str, notification: Notification) -> Notification {
        let Some(params) = &notification.params else { return notification };
        let members = ObjectMembers::parse(params).unwrap_or_default();
        let uri = members.get("uri").and_then(|json| serde_json::from_str::<String>(json).ok());
        let known = uri.and_then(|uri| {
            let subscribed = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
            subscribed.get(&(server.to_owned(), uri)).copied()
        });
        let form = AddressForm::Resource;
        let shown = match known {
            Some(is_qualified) => exposed::qualified(server, form, params.get(), &|_| is_qualified),
            None => {
                let offers = self.catalog().offers(&self.caller());
                offers.addresses.shown(server, form, params.get())
            }
        };
        match shown {
            Some(shown) => Notification { params: Some(raw(shown)), ..notification },
            None => notification,
        }
    }
}
