//! Measures the pure part of the ledger per call: hashes of arguments, a receipt's canonical body,
//! its signature and its verification; each compared with the general method where there is one.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use receipt::RiskLevel;
use receipt::canonical::{self, Digest};
use receipt::content::{
    Action, ActionTarget, Body, Issuer, OutcomeStatus, Position, Principal, Receipt, ReceiptOutcome,
};
use receipt::{Hash, Runtime, SigningKey, verify};
use serde_json::Value;
use text::json::Object;

const TIME: &str = "2026-11-15T05:30:00.123Z";
const ARGUMENTS: &str = r#"{"path":"/home/me/project/src/main.rs","limit":200,"offset":0,"options":{"follow":true,"encoding":"utf-8"},"tags":["a","b"]}"#;

fn runtime() -> Runtime<'static> {
    let mut runtime = Runtime::new();
    for (name, text) in [
        ("tool", "create_issue"),
        ("server", "github"),
        ("declared_class", "write"),
        ("effective_class", "write"),
        ("reason", "file the bug that the test found"),
        ("sensitivity", "internal"),
        ("verdict", "ALLOWED"),
        ("surface", "mcp"),
        ("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736"),
    ] {
        runtime.insert(name, text);
    }
    runtime.insert("duration_ms", 12u32);
    runtime
}

fn receipt(issuer: &str) -> Receipt<'_> {
    Receipt {
        id: "0193f2a0-1111-7111-8111-111111111111",
        issuer: Issuer {
            id: issuer,
            name: Some("Countersign"),
            session_id: Some("0193f2a0-3333-7333-8333-333333333333"),
            runtime: runtime(),
            ..Issuer::default()
        },
        issued_at: TIME,
        principal: Principal { id: "did:user:me", kind: None },
        action: Action {
            id: "0193f2a0-2222-7222-8222-222222222222",
            action_type: "data.api.write",
            risk: RiskLevel::Medium,
            target: Some(ActionTarget { system: "github", resource: Some("me/project") }),
            parameters_hash: Some(Hash::of(b"parameters")),
            peer: None,
            drop_count: None,
            timestamp: TIME,
            idempotency_key: Some("7"),
        },
        outcome: ReceiptOutcome {
            status: OutcomeStatus::Success,
            error: None,
            response_hash: Some(Hash::of(b"response")),
        },
        correlation_id: Some("toolu_01A09q90qw90lq917835lq9"),
        rotation: None,
    }
}

fn position() -> Position<'static> {
    Position {
        chain_id: "chain_0193f2a0-0000-7000-8000-000000000001",
        sequence: 4711,
        previous: Some(Hash::of(b"previous")),
        termination: None,
    }
}

fn arguments(c: &mut Criterion) {
    let object = Object::parse(ARGUMENTS).expect("JSON").expect("an object");
    c.bench_function("arguments/hash from text", |b| {
        b.iter(|| Digest::of_text(black_box(ARGUMENTS)))
    });
    c.bench_function("arguments/hash from object", |b| {
        b.iter(|| Digest::of_object(black_box(&object)))
    });
    c.bench_function("arguments/serde_json_canonicalizer from object", |b| {
        b.iter(|| {
            let bytes = serde_json_canonicalizer::to_vec(black_box(object.value()));
            Hash::of(&bytes.expect("it has a canonical form"))
        })
    });
}

fn body(c: &mut Criterion) {
    let key = SigningKey::from_seed(&[7; 32]);
    let issuer = key.public().did();
    let (receipt, position) = (receipt(&issuer), position());
    let text = receipt.body(&position).text().to_owned();
    let tree: Value = serde_json::from_str(&text).expect("JSON");
    c.bench_function("body/straight", |b| b.iter(|| black_box(&receipt).body(&position)));
    c.bench_function("body/from a tree", |b| {
        b.iter(|| {
            let text = canonical::receipt(black_box(&tree)).expect("faithful");
            Hash::of(text.as_bytes())
        })
    });
    c.bench_function("body/serde_json_canonicalizer from a tree", |b| {
        b.iter(|| Hash::of(&serde_json_canonicalizer::to_vec(black_box(&tree)).expect("canonical")))
    });
    c.bench_function("body/runtime map", |b| b.iter(runtime));
    c.bench_function("body/read back from text", |b| {
        b.iter(|| Body::from_text(black_box(&text).clone()))
    });
}

fn signature(c: &mut Criterion) {
    let key = SigningKey::from_seed(&[7; 32]);
    let issuer = key.public().did();
    let body = receipt(&issuer).body(&position());
    let signed = body.sign(&key, TIME);
    c.bench_function("signature/sign", |b| b.iter(|| black_box(&body).sign(&key, TIME)));
    let public = key.public();
    c.bench_function("signature/verify", |b| {
        b.iter(|| verify::receipt(black_box(&signed), &public))
    });
}

criterion_group!(benches, arguments, body, signature);
criterion_main!(benches);
