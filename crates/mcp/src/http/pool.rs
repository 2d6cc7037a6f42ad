//! The connections to one server, kept between requests. A connection has no separate task:
//! whichever task waits for its response polls it, so that an exchange costs no thread switch.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use http_body_util::Full;
use hyper::Request;
use hyper::body::{Body, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::runtime::{self, Handle};
use tokio::time::Instant;

use super::dial::{Dial, DialFault};
use crate::delivery::Delivery;
use crate::limits;
use crate::peer::lock;

pub(super) struct Pool {
    pub(super) dial: Dial,
    idle: Mutex<IdleLinks>,
}

#[derive(Default)]
struct IdleLinks {
    /// Ordered by last use; the most recent is last and is reused first.
    links: Vec<(Box<PooledLink>, Instant)>,
    /// A task is waiting to close the links that stay unused.
    is_swept: bool,
}

impl IdleLinks {
    fn take(&mut self, home: runtime::Id) -> Option<(Box<PooledLink>, Instant)> {
        let last = self.links.iter().rposition(|(link, _)| link.home == home)?;
        Some(self.links.remove(last))
    }
}

type HttpRequest = Request<Full<Bytes>>;

struct PooledLink {
    /// The runtime that watches it. For a task of another one, each message would cost a change of
    /// thread.
    home: runtime::Id,
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it has ended. Boxed, as `send` is, so that the code of a connection is compiled
    /// here and not again in every crate that sends.
    connection: Option<BoxFuture<'static, hyper::Result<()>>>,
}

impl Pool {
    pub(super) fn new(dial: Dial) -> Arc<Pool> {
        Arc::new(Pool { dial, idle: Mutex::default() })
    }

    /// Sends a message. A kept connection that turns out to be dead before it has taken the message
    /// is replaced; a message that was sent is never sent again.
    pub(super) fn send<'a>(
        self: &'a Arc<Self>,
        message: HttpRequest,
        delivery: &'a Delivery,
    ) -> BoxFuture<'a, Result<PooledResponse, DialFault>> {
        self.exchange(message, delivery).boxed()
    }

    async fn exchange(
        self: &Arc<Self>,
        mut message: HttpRequest,
        delivery: &Delivery,
    ) -> Result<PooledResponse, DialFault> {
        let home = Handle::current().id();
        while let Some(mut link) = self.take(home) {
            match link.exchange(message, delivery).await {
                Ok(response) => return Ok(self.response(response, link)),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => message = unsent,
                    None => return Err(failed.into_error().into()),
                },
            }
        }
        let (sender, connection) = handshake(TokioIo::new(self.dial.open().await?)).await?;
        let mut link = Box::new(PooledLink { home, sender, connection: Some(connection.boxed()) });
        let response = link.exchange(message, delivery).await.map_err(TrySendError::into_error)?;
        Ok(self.response(response, link))
    }

    fn take(&self, home: runtime::Id) -> Option<Box<PooledLink>> {
        loop {
            let (mut link, since) = lock(&self.idle).take(home)?;
            if since.elapsed() < limits::HTTP_POOL_IDLE && link.is_ready() {
                return Some(link);
            }
        }
    }

    fn response(
        self: &Arc<Self>,
        response: hyper::Response<Incoming>,
        link: Box<PooledLink>,
    ) -> PooledResponse {
        let (head, body) = response.into_parts();
        PooledResponse { head, body, has_ended: false, link: Some(link), pool: self.clone() }
    }

    fn keep(self: &Arc<Self>, link: Box<PooledLink>) {
        let mut idle = lock(&self.idle);
        if link.connection.is_none() || idle.links.len() >= limits::HTTP_POOL_CONNECTIONS_MAX {
            return;
        }
        idle.links.push((link, Instant::now()));
        if !idle.is_swept
            && let Ok(runtime) = Handle::try_current()
        {
            idle.is_swept = true;
            runtime.spawn(sweep(Arc::downgrade(self)).boxed());
        }
    }

    /// Closes connections that were unused for too long and reports whether any are left.
    fn close_unused(&self) -> bool {
        let mut idle = lock(&self.idle);
        idle.links.retain(|(_, since)| since.elapsed() < limits::HTTP_POOL_IDLE);
        idle.is_swept = !idle.links.is_empty();
        idle.is_swept
    }
}

/// Closes unused connections, until none or no pool is left.
async fn sweep(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(limits::HTTP_POOL_IDLE).await;
        if !pool.upgrade().is_some_and(|pool| pool.close_unused()) {
            return;
        }
    }
}

impl PooledLink {
    /// Reports whether it is still open and has finished its last request.
    fn is_ready(&mut self) -> bool {
        self.advance(&mut unheard());
        self.connection.is_some() && self.sender.is_ready()
    }

    async fn exchange(
        &mut self,
        message: HttpRequest,
        delivery: &Delivery,
    ) -> Result<hyper::Response<Incoming>, TrySendError<HttpRequest>> {
        delivery.begin();
        let mut sending = pin!(self.sender.try_send_request(message));
        let answered = poll_fn(|cx| {
            advance(&mut self.connection, cx);
            sending.as_mut().poll(&mut unheard())
        });
        let answered = answered.await;
        // A message that is returned was not written.
        if answered.as_ref().is_err_and(|failed| failed.message().is_some()) {
            delivery.undo();
        }
        answered
    }

    fn advance(&mut self, cx: &mut Context<'_>) {
        advance(&mut self.connection, cx);
    }
}

fn advance(connection: &mut Option<BoxFuture<'_, hyper::Result<()>>>, cx: &mut Context<'_>) {
    if let Some(running) = connection
        && running.poll_unpin(cx).is_ready()
    {
        // The error is reported to whichever task waits for a response.
        *connection = None;
    }
}

/// A context that wakes no task, for state that changes only while its connection is polled.
fn unheard() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// A response whose body is still to be read.
pub struct PooledResponse {
    head: Parts,
    body: Incoming,
    has_ended: bool,
    link: Option<Box<PooledLink>>,
    pool: Arc<Pool>,
}

impl PooledResponse {
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Returns the next chunk of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        while !self.has_ended && !self.body.is_end_stream() {
            match poll_fn(|cx| self.poll_frame(cx)).await.transpose()? {
                Some(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                None => self.has_ended = true,
            }
        }
        Ok(None)
    }

    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>> {
        let ready = Pin::new(&mut self.body).poll_frame(&mut unheard());
        if ready.is_ready() {
            return ready;
        }
        if let Some(link) = &mut self.link {
            link.advance(cx);
        }
        Pin::new(&mut self.body).poll_frame(&mut unheard())
    }
}

impl Drop for PooledResponse {
    fn drop(&mut self) {
        if (self.has_ended || self.body.is_end_stream())
            && let Some(link) = self.link.take()
        {
            self.pool.keep(link);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;
    use std::thread;

    use tokio::runtime::{Builder, Runtime};
    use url::Url;

    use super::super::address::AddressRule;
    use super::*;

    /// Starts a server that names the connection on which a request came.
    fn server() -> Url {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                    for _ in lines.map_while(Result::ok).filter(String::is_empty) {
                        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}")
                            .unwrap();
                    }
                });
            }
        });
        Url::parse(&url).unwrap()
    }

    fn connection_used(runtime: &Runtime, pool: &Arc<Pool>) -> Bytes {
        runtime.block_on(async {
            let request = Request::builder().uri("/").header("host", "h").body(Full::default());
            let mut response = pool.send(request.unwrap(), &Delivery::default()).await.unwrap();
            let body = response.chunk().await.unwrap().unwrap();
            assert!(response.chunk().await.unwrap().is_none());
            body
        })
    }

    #[test]
    fn a_connection_is_used_again_by_the_runtime_that_watches_it() {
        let pool = Pool::new(Dial::new(&server(), AddressRule::Any).unwrap());
        let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
        let (one, two) = (runtime(), runtime());
        let used = [&one, &one, &two, &one, &two].map(|runtime| connection_used(runtime, &pool));
        assert_eq!(used, ["0", "0", "1", "0", "1"]);
    }
}
