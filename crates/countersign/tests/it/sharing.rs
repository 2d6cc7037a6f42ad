//! The processes of servers: when they are started, which clients share them, and when they end.
//! Clients that accept requests have their own, so that requests reach the right one and no client's
//! folders leak to another.

use std::path::Path;

use rustix::process::{Pid, test_kill_process};
use serde_json::json;
use testkit::client::{Client, able, answers, text};
use testkit::foreign;
use testkit::gate::Gate;
use testkit::program::{stdio_client, stdout};
use testkit::upstream::{counted, ended, pids};
use testkit::wait::eventually;

use crate::foreign::servers;

#[tokio::test]
async fn smoke_each_client_is_asked_by_its_own_process_which_ends_with_it() {
    let servers = |dir: &Path| {
        let tools = json!([{"name": "roots", "x-do": {"ask": "roots/list"}}]);
        let mut late = counted(dir, "late", &tools);
        late["start"] = "lazy".into();
        json!({"s": counted(dir, "s", &tools), "late": late})
    };
    let gate = Gate::start(servers, json!({})).await;
    gate.ready("s").await;
    let stdio = async |who: &str| {
        stdio_client(gate.dir.path(), &["--server", "s"], able(), answers(who)).await
    };
    let http = async |who: &str| gate.http_at_with("/mcp/s/s", able(), answers(who)).await;
    let clients = [
        ("first", stdio("first").await),
        ("second", stdio("second").await),
        ("third", http("third").await),
        ("fourth", http("fourth").await),
    ];
    for (who, client) in &clients {
        let result = client.call("roots", json!({})).await;
        assert!(text(&result).contains(&format!("file:///{who}")), "{who}: {result}");
    }
    let all = pids(gate.dir.path(), "s");
    assert_eq!(all.len(), 5, "the shared one, and one for each");
    for ((_, client), pid) in clients.iter().zip(&all[1..]) {
        client.peer.close("done");
        ended(*pid).await;
    }
    let shared = Pid::from_raw(all[0]).unwrap();
    assert!(test_kill_process(shared).is_ok(), "the shared one stays");
    let table = stdout(&gate.cli(&["upstream", "list"]).await);
    let row = table.lines().find(|line| line.starts_with("late")).unwrap();
    assert!(row.contains("idle"), "{table}");
    assert_eq!(pids(gate.dir.path(), "late"), [0; 0], "nobody has needed it");
}

#[tokio::test]
async fn one_clients_folders_do_not_become_anothers() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let gate = servers::gate(|dir| json!({"f": servers::filesystem(dir)})).await;
    let folder = |who: &str| {
        let folder = gate.dir.path().join(who);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("a.txt"), format!("words of {who}")).unwrap();
        folder
    };
    let (a, b, common) = (folder("a"), folder("b"), gate.dir.path().join("files"));
    std::fs::write(common.join("a.txt"), "words of all").unwrap();
    let with_roots = async |folder: &Path| {
        let roots = json!({"roots": [{"uri": format!("file://{}", folder.display())}]});
        gate.http_at_with("/mcp/s/f", json!({"roots": {}}), vec![("roots/list", roots)]).await
    };
    let read = async |client: &Client, folder: &Path| {
        let file = json!({"path": folder.join("a.txt")});
        text(&client.call("read_text_file", file).await).to_owned()
    };
    let (client_a, client_b) = (with_roots(&a).await, with_roots(&b).await);
    let plain = gate.http_at("/mcp/s/f").await;
    // The server requests the roots on its own, soon after the first call has opened the
    // connection.
    eventually(|| async { (read(&client_a, &a).await == "words of a").then_some(()) }).await;
    eventually(|| async { (read(&client_b, &b).await == "words of b").then_some(()) }).await;
    assert_eq!(read(&plain, &common).await, "words of all");
    for (client, foreign) in
        [(&client_a, &b), (&client_a, &common), (&client_b, &a), (&plain, &a), (&plain, &b)]
    {
        let words = read(client, foreign).await;
        assert!(words.contains("Access denied"), "{}: {words}", foreign.display());
    }
}
