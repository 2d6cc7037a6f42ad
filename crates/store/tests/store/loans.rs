//! A ledger on loan: entries of one process that another one writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::tool::Class;
use store::{CommitReply, Entry, EntryForm, Lender, Store, StoreError};
use tokio::sync::oneshot;

use super::support::{Home, call, ended, rules, started};

/// A process that writes, as the other one sees it: every entry crosses as text.
#[derive(Clone)]
struct OtherProcess {
    store: Store,
    is_gone: Arc<AtomicBool>,
}

impl Lender for OtherProcess {
    fn append(&self, entry: Entry, reply: CommitReply) {
        if self.is_gone() {
            return;
        }
        let text = serde_json::to_string(&EntryForm::from(entry)).unwrap();
        let form: EntryForm = serde_json::from_str(&text).unwrap();
        let commit = self.store.append(form.entry().unwrap());
        tokio::spawn(async move { reply.send(commit.await) });
    }

    fn settle(&self, done: oneshot::Sender<()>) {
        let store = self.store.clone();
        tokio::spawn(async move {
            store.settled().await;
            done.send(())
        });
    }

    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    fn fault(&self) -> Option<StoreError> {
        None
    }
}

fn borrowed(home: &Home) -> (OtherProcess, Store) {
    let lender = OtherProcess { store: home.open(), is_gone: Arc::default() };
    let store = Store::borrow(home.path(), &rules(), Box::new(lender.clone()));
    (lender, store)
}

#[tokio::test]
async fn calls_of_a_borrower_are_in_the_chain_of_the_lender() {
    let home = Home::new();
    let (lender, store) = borrowed(&home);
    let mut calls = Vec::new();
    for class in [Class::Read, Class::Write, Class::Destructive] {
        calls.push(call(&store, class).await.unwrap().0);
        calls.push(call(&lender.store, class).await.unwrap().0);
    }
    store.settled().await;
    let record = store.read().record(&calls[0]).unwrap().unwrap();
    assert!(record.payloads.arguments.is_some_and(|text| text.contains("/srv/notes.txt")));
    store.close().await.unwrap();
    lender.store.close().await.unwrap();
    let look = home.look();
    assert_eq!(look.chains.len(), 1);
    calls.iter().for_each(|call| look.assert_recorded(call));
}

#[tokio::test]
async fn a_borrower_writes_for_itself_once_the_lender_is_gone() {
    let home = Home::new();
    let (lender, store) = borrowed(&home);
    let (before, _) = call(&store, Class::Write).await.unwrap();
    let running = started(Class::Write);
    store.append(Entry::Started(Box::new(running.clone()))).await.unwrap();
    lender.is_gone.store(true, Ordering::Release);
    lender.store.close().await.unwrap();
    // The lender has ended it as interrupted; a second receipt would contradict that.
    let end = store.append(Entry::Ended(Box::new(ended(&running)))).await;
    assert!(matches!(end, Err(StoreError::Closed)), "{end:?}");
    let (after, _) = call(&store, Class::Write).await.unwrap();
    store.close().await.unwrap();
    let look = home.look();
    assert_eq!(look.chains.len(), 2);
    look.assert_recorded(&before);
    look.assert_recorded(&after);
    assert_eq!(look.status(&running.id), "interrupted");
    let receipts = look.chains.iter().flat_map(|chain| &chain.receipts);
    let id = format!("urn:receipt:{}", running.id);
    assert_eq!(receipts.filter(|receipt| receipt["id"] == *id).count(), 1);
}
