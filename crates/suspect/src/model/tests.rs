//! The training of the model, and its figures on definitions that it was not trained on.
//! `UPDATE_MODEL=1` trains it again.

use serde_json::Value;

use super::*;

const SET: &str = include_str!("../../testdata/poisoning.json");

/// Definitions in real use, all harmless.
const REAL: [&str; 3] = [
    include_str!("../../../search/testdata/retrieval/scale-livemcptool.json"),
    include_str!("../../../search/testdata/retrieval/dev-bfcl.json"),
    include_str!("../../../search/testdata/retrieval/dev-metatool.json"),
];

/// A prime, so that steps of it visit each of fewer rows once, in a mixed order.
const STEP: usize = 7_919;
const EPOCHS: u16 = 60;
const RATE: f32 = 2.0;
const DECAY: f32 = 1e-5;
/// The weight of a poisoned row: there are fewer of them.
const POISONED_WEIGHT: f32 = 2.0;
/// The score above which a text counts as suspicious; higher for fewer false alarms.
const THRESHOLD: f32 = 0.5;

struct Row {
    features: Vec<usize>,
    is_poisoned: bool,
    is_training: bool,
}

struct Weights {
    of: Vec<f32>,
    bias: f32,
}

impl Weights {
    fn score(&self, features: &[usize]) -> f32 {
        let sum: f32 = features.iter().map(|feature| self.of[*feature]).sum();
        self.bias + sum / (features.len() as f32).sqrt()
    }

    fn bytes(&self) -> Vec<u8> {
        let largest = self.of.iter().fold(0.0_f32, |most, weight| most.max(weight.abs()));
        let scale = largest / 127.0;
        let mut bytes = scale.to_le_bytes().to_vec();
        bytes.extend((self.bias - THRESHOLD).to_le_bytes());
        bytes.extend(self.of.iter().map(|weight| ((weight / scale).round() as i8).cast_unsigned()));
        bytes
    }
}

/// Logistic regression by stochastic gradient descent, in a fixed order.
fn train(rows: &[&Row]) -> Weights {
    let mut weights = Weights { of: vec![0.0; BUCKETS], bias: 0.0 };
    for epoch in 0..EPOCHS {
        let rate = RATE / (1.0 + f32::from(epoch) * 0.2);
        for at in 0..rows.len() {
            let row = rows[at * STEP % rows.len()];
            let probability = 1.0 / (1.0 + (-weights.score(&row.features)).exp());
            let (target, weight) =
                if row.is_poisoned { (1.0, POISONED_WEIGHT) } else { (0.0, 1.0) };
            let error = rate * weight * (target - probability);
            let value = 1.0 / (row.features.len() as f32).sqrt();
            for feature in &row.features {
                let old = weights.of[*feature];
                weights.of[*feature] = old + error * value - rate * DECAY * old;
            }
            weights.bias += 0.1 * error;
        }
    }
    weights
}

fn row(definition: &Value, is_poisoned: bool, is_training: bool) -> Row {
    let texts = super::super::seen_texts(&definition.to_string());
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut features: Vec<usize> = all_features(&texts).into_iter().collect();
    features.sort_unstable();
    Row { features, is_poisoned, is_training }
}

fn rows() -> Vec<Row> {
    let set: Vec<Value> = serde_json::from_str(SET).unwrap();
    let mut rows: Vec<Row> = set
        .iter()
        .map(|entry| {
            row(&entry["definition"], entry["label"] == "poisoned", entry["split"] == "train")
        })
        .collect();
    for set in REAL {
        let set: Value = serde_json::from_str(set).unwrap();
        rows.extend(set["tools"].as_array().unwrap().iter().map(|tool| row(tool, false, true)));
    }
    rows
}

#[test]
fn the_model_is_the_trained_one() {
    let rows = rows();
    let training: Vec<&Row> = rows.iter().filter(|row| row.is_training).collect();
    let weights = train(&training);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/trust/warning/model.bin");
    let bytes = weights.bytes();
    if std::env::var_os("UPDATE_MODEL").is_some_and(|value| value == "1") {
        std::fs::write(path, &bytes).unwrap();
        return;
    }
    let differing =
        bytes.iter().zip(MODEL).filter(|(one, other)| one.abs_diff(**other) > 1).count();
    assert!(bytes.len() == MODEL.len() && differing < 100, "{differing}: run with UPDATE_MODEL=1");
}
