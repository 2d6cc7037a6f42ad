//! Streams as servers send them, valid and invalid, cut at any place.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn assembled(chunks: &[&[u8]]) -> Result<ModelAnswer, AnswerFault> {
    let mut assembly = Assembly::new(ModelApi::Chat);
    for chunk in chunks {
        assembly.push(chunk)?;
        if assembly.is_done() {
            break;
        }
    }
    assembly.end()
}

fn of(text: &str) -> Result<ModelAnswer, AnswerFault> {
    assembled(&[text.as_bytes()])
}

/// Events with these deltas; the last is followed by the finish reason.
fn stream(deltas: &[Value], finish: &str) -> String {
    let event = |choice: Value| format!("data: {}\n\n", json!({"choices": [choice]}));
    let deltas = deltas.iter().map(|delta| event(json!({"index": 0, "delta": delta})));
    let last = event(json!({"index": 0, "delta": {}, "finish_reason": finish}));
    deltas.chain([last, "data: [DONE]\n\n".to_owned()]).collect()
}

fn calls_of(pieces: &[Value]) -> Vec<(String, String, String)> {
    let deltas: Vec<Value> = pieces.iter().map(|piece| json!({"tool_calls": [piece]})).collect();
    let answer = of(&stream(&deltas, "tool_calls")).unwrap();
    answer.calls.into_iter().map(|call| (call.id, call.name, call.arguments)).collect()
}

/// Two calls with interleaved pieces, text beyond ASCII, both kinds of line ends, comments,
/// keep-alives, repeated names, and the usage.
const BUSY: &str = concat!(
    ": hello\r\n\r\n",
    "data: {\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"gr\u{fc}\u{df} \"}}]}\r\n\r\n",
    "event: ping\ndata: alive\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\u{1f600}\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"Read\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"b\",\"function\":{\"name\":\"Bash\",\"arguments\":\"{\\\"comm\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"Read\",\"arguments\":\"{\\\"path\\\": \\\"\u{e9}\"}}]}}]}\r\r",
    ": still here\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"and\\\": \\\"ls\\\"}\"}},\ndata: {\"index\":0,\"function\":{\"arguments\":\".txt\\\"}\"}}]}}]}\n\n",
    "garbage that is no field\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5,\"total_tokens\":12,\"cost\":0.25}}\n\n",
    "data: [DONE]\n\n",
);

#[test]
fn a_busy_stream_is_put_together() {
    let answer = of(BUSY).unwrap();
    assert_eq!(answer.text, "gr\u{fc}\u{df} \u{1f600}");
    assert_eq!(answer.model.as_deref(), Some("m-1"));
    assert_eq!(answer.finish.as_deref(), Some("tool_calls"));
    assert_eq!(answer.usage, Some(Usage { tokens: 12, cost_usd: Some(0.25) }));
    let calls: Vec<_> =
        answer.calls.iter().map(|it| (&*it.id, &*it.name, &*it.arguments)).collect();
    assert_eq!(
        calls,
        [("a", "Read", "{\"path\": \"\u{e9}.txt\"}"), ("b", "Bash", "{\"command\": \"ls\"}")]
    );
}

#[test]
fn a_cut_at_any_byte_changes_nothing() {
    let whole = json!({"model": "m", "choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"content": "\u{1f600}", "tool_calls": [{"id": "a", "function": {"name": "f",
        "arguments": "{}"}}]}}]});
    let broken =
        "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"half\": [1, \n\n";
    for text in [BUSY, &format!("\r\n {whole}\n"), broken, "data: [DONE]\n\n", "<html></html>"] {
        let bytes = text.as_bytes();
        let expected = assembled(&[bytes]);
        for cut in 0..=bytes.len() {
            assert_eq!(assembled(&[&bytes[..cut], &bytes[cut..]]), expected, "{cut} of {text}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(assembled(&single), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn cuts_at_any_pair_of_bytes_change_nothing(one in 0..=BUSY.len(), two in 0..=BUSY.len()) {
        let (bytes, from, to) = (BUSY.as_bytes(), one.min(two), one.max(two));
        let chunks = [&bytes[..from], &bytes[from..to], &bytes[to..]];
        prop_assert_eq!(assembled(&chunks), assembled(&[bytes]));
    }

    /// However the arguments are split, and whichever call's piece comes next.
    #[test]
    fn pieces_in_any_order_make_the_same_calls(
        sizes in proptest::collection::vec(1usize..6, 1..30),
        turns in proptest::collection::vec(0usize..3, 0..60),
    ) {
        let arguments = [r#"{"a":"\u00e9\n"}"#, r#"{"b":[1,2,{"c":null}]}"#, "{}"];
        let mut left: Vec<std::collections::VecDeque<String>> = arguments.iter().map(|text| {
            let (mut pieces, mut rest) = (std::collections::VecDeque::new(), *text);
            for size in sizes.iter().cycle() {
                if rest.is_empty() { break; }
                let (piece, more) = rest.split_at((*size).min(rest.len()));
                pieces.push_back(piece.to_owned());
                rest = more;
            }
            pieces
        }).collect();
        let mut pieces: Vec<Value> = (0..3).map(|index| json!({
            "index": index, "id": format!("id{index}"), "function": {"name": format!("f{index}")},
        })).collect();
        for index in turns.into_iter().chain([0, 1, 2].into_iter().cycle().take(200)) {
            if let Some(piece) = left[index].pop_front() {
                pieces.push(json!({"index": index, "function": {"arguments": piece}}));
            }
        }
        let expected: Vec<_> = (0..3)
            .map(|index| (format!("id{index}"), format!("f{index}"), arguments[index].to_owned()))
            .collect();
        prop_assert_eq!(calls_of(&pieces), expected);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = assembled(&[&bytes]);
        let _ = assembled(&[b"data: {\"choices\":[{\"delta\":", &bytes, b"}]}\n\n"]);
    }
}

#[test]
fn calls_are_told_apart_however_a_server_marks_them() {
    let call = |id: &str, name: &str, arguments: &str| {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    };
    let f = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    for (what, pieces, expected) in [
        (
            "a whole call in one piece",
            vec![json!({"index": 0, "id": "a", "function": f("x", "{}")})],
            vec![call("a", "x", "{}")],
        ),
        (
            "the later call first",
            vec![
                json!({"index": 1, "id": "b", "function": f("y", "{}")}),
                json!({"index": 0, "id": "a", "function": f("x", "{}")}),
            ],
            vec![call("a", "x", "{}"), call("b", "y", "{}")],
        ),
        (
            "no index: pieces without an id go on",
            vec![
                json!({"id": "a", "function": f("x", "{\"p\"")}),
                json!({"function": {"arguments": ":1}"}}),
                json!({"id": "b", "function": f("y", "{}")}),
            ],
            vec![call("a", "x", "{\"p\":1}"), call("b", "y", "{}")],
        ),
        (
            "no index: the id tells which",
            vec![
                json!({"id": "a", "function": f("x", "{")}),
                json!({"id": "b", "function": f("y", "{")}),
                json!({"id": "a", "function": {"arguments": "}"}}),
                json!({"id": "b", "function": {"arguments": "}"}}),
            ],
            vec![call("a", "x", "{}"), call("b", "y", "{}")],
        ),
        (
            "neither index nor id: a name begins a call",
            vec![json!({"function": f("x", "{}")}), json!({"function": f("y", "{\"q\":2}")})],
            vec![call("", "x", "{}"), call("", "y", "{\"q\":2}")],
        ),
        (
            "all of them number 0, each with its id",
            vec![
                json!({"index": 0, "id": "a", "function": f("x", "{}")}),
                json!({"index": 0, "id": "b", "function": f("x", "{}")}),
            ],
            vec![call("a", "x", "{}"), call("b", "x", "{}")],
        ),
        (
            "id and name in every piece",
            vec![
                json!({"index": 0, "id": "a", "function": f("x", "{")}),
                json!({"index": 0, "id": "a", "function": f("x", "}")}),
            ],
            vec![call("a", "x", "{}")],
        ),
        (
            "id and name behind the first piece, empty before",
            vec![
                json!({"index": 0, "id": "", "function": f("", "{")}),
                json!({"index": 0, "id": "a", "function": f("x", "}")}),
            ],
            vec![call("a", "x", "{}")],
        ),
        (
            "arguments that are no text",
            vec![json!({"index": 0, "id": "a", "function": {"name": "x", "arguments": {"p": 1}}})],
            vec![call("a", "x", "{\"p\":1}")],
        ),
        ("a piece with nothing in it", vec![json!({"index": 0}), json!("x"), json!(null)], vec![]),
        (
            "no name",
            vec![json!({"index": 0, "id": "a", "function": {"arguments": "{}"}})],
            vec![call("a", "", "{}")],
        ),
    ] {
        assert_eq!(calls_of(&pieces), expected, "{what}");
    }
}

#[test]
fn unusual_streams_are_handled() {
    let done = "data: [DONE]\n\n";
    let text = |answer: Result<ModelAnswer, AnswerFault>| answer.map(|answer| answer.text);
    let one = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}";
    // No [DONE], no empty line at the end, no line end at all; text after the end.
    for stream in [format!("{one}\n\n"), format!("{one}\n"), one.to_owned()] {
        assert_eq!(text(of(&stream)).unwrap(), "hi", "{stream:?}");
    }
    assert_eq!(text(of(&format!("{one}\n\n{done}{one}\n\n"))).unwrap(), "hi");
    // [DONE] without a reason.
    let bare = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
    assert_eq!(text(of(&format!("{bare}{done}"))).unwrap(), "hi");
    assert_eq!(text(of(bare)), Err(AnswerFault::Unfinished));
    // Other choices are ignored.
    let other = "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"}},{\"index\":0,\"delta\":{\"content\":\"yes\"}}]}\n\n";
    assert_eq!(text(of(&format!("{other}{done}"))).unwrap(), "yes");
    // One object when events were requested, and content in parts.
    let whole = json!({"choices": [{"message": {"content": [{"type": "text", "text": "a"},
        {"type": "text", "text": "b"}]}}], "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
    let answer = of(&whole.to_string()).unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("ab", None));
    assert_eq!(answer.usage, Some(Usage { tokens: 7, cost_usd: None }));
    let refusal = json!({"choices": [{"message": {"content": null, "refusal": "I cannot",
        "reasoning_content": "hm"}}]});
    let answer = of(&refusal.to_string()).unwrap();
    assert_eq!((answer.refusal.as_str(), answer.reasoning.content.as_str()), ("I cannot", "hm"));
    for (nothing, fault) in [
        ("", AnswerFault::NoChoices),
        ("\n\n", AnswerFault::NoChoices),
        (done, AnswerFault::NoChoices),
        (": only a comment\n\n", AnswerFault::NoChoices),
        ("<html>not here</html>", AnswerFault::NoChoices),
        ("{}", AnswerFault::NoChoices),
        ("{\"choices\":[]}", AnswerFault::NoChoices),
        ("{\"choices\":{}}", AnswerFault::NoChoices),
        ("data: {\"type\":\"ping\"}\n\n", AnswerFault::NoChoices),
    ] {
        assert_eq!(of(nothing), Err(fault), "{nothing:?}");
    }
    for rubbish in ["{\"choices\": [", "data: {\"half\": [1, \n\n", "data: {\u{0}}\n\n"] {
        assert!(matches!(of(rubbish), Err(AnswerFault::Rubbish(_))), "{rubbish:?}");
    }
}

#[test]
fn errors_sent_instead_of_an_answer_are_reported() {
    for (body, status, message) in [
        (json!({"error": {"message": "no", "code": 503}}), Some(503), "no"),
        (json!({"error": {"message": "no", "code": "rate_limit"}}), None, "no"),
        (json!({"error": "plain"}), None, "plain"),
        (json!({"object": "error", "message": "no", "code": 400}), Some(400), "no"),
        (json!({"error": {}}), None, "no error message"),
    ] {
        let fault = AnswerFault::Reported { status, message: message.to_owned() };
        assert_eq!(of(&body.to_string()), Err(fault.clone()));
        let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
        assert_eq!(of(&format!("{begun}data: {body}\n\n")), Err(fault));
    }
    let fine = json!({"error": null, "choices": [{"message": {"content": "hi"}}]});
    assert_eq!(of(&fine.to_string()).unwrap().text, "hi");
}

#[test]
fn every_part_has_its_bound() {
    let endless = vec![b'x'; EVENT_BYTES_MAX + 1];
    for start in [b"data: ".as_slice(), b"{\"a\": \"", b": "] {
        let mut assembly = Assembly::new(ModelApi::Chat);
        assembly.push(start).unwrap();
        assert_eq!(assembly.push(&endless), Err(AnswerFault::LongPiece(EVENT_BYTES_MAX)));
    }
    let piece = json!({"choices": [{"delta": {"content": "x".repeat(1024 * 1024)}}]});
    let piece = format!("data: {piece}\n\n");
    let mut assembly = Assembly::new(ModelApi::Chat);
    let pushed = (0..9).try_for_each(|_| assembly.push(piece.as_bytes()));
    assert_eq!(pushed, Err(AnswerFault::Long(CONTENT_BYTES_MAX)));
    let mut assembly = Assembly::new(ModelApi::Chat);
    assembly.push(b": alive\n\n").unwrap();
    assembly.bytes = STREAM_BYTES_MAX;
    assert_eq!(assembly.push(b":"), Err(AnswerFault::Long(STREAM_BYTES_MAX)));
    let many: Vec<Value> = (0..=CALLS_MAX)
        .map(|index| json!({"tool_calls": [{"index": index, "function": {"name": "f"}}]}))
        .collect();
    assert_eq!(of(&stream(&many, "tool_calls")), Err(AnswerFault::ManyCalls));
    assert_eq!(of(&stream(&many[1..], "tool_calls")).unwrap().calls.len(), CALLS_MAX);
}
