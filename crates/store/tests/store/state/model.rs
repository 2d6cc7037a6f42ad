//! Any decisions in any order, compared with a map.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Approved(usize, usize),
    Pending(usize, usize),
    Gone(usize),
    Back(usize),
    Review(usize, usize),
}

const NAMES: [&str; 3] = ["a", "b", "c"];
const TEXTS: [&str; 3] = ["1", "2", "3"];

fn step() -> impl Strategy<Value = Step> {
    let pair = || (0..NAMES.len(), 0..TEXTS.len());
    prop_oneof![
        pair().prop_map(|(name, text)| Step::Approved(name, text)),
        pair().prop_map(|(name, text)| Step::Pending(name, text)),
        (0..NAMES.len()).prop_map(Step::Gone),
        (0..NAMES.len()).prop_map(Step::Back),
        pair().prop_map(|(name, text)| Step::Review(name, text)),
    ]
}

#[derive(Clone, Default, PartialEq)]
struct Model {
    approved: Option<usize>,
    pending: Option<usize>,
    listed: bool,
}

fn expect(items: &mut BTreeMap<usize, Model>, step: &Step) {
    match *step {
        Step::Approved(name, text) => {
            let item = Model { approved: Some(text), pending: None, listed: true };
            items.insert(name, item);
        }
        Step::Pending(name, text) => {
            let item = items.entry(name).or_default();
            (item.pending, item.listed) = (Some(text), true);
        }
        Step::Gone(name) => {
            items.retain(|other, item| *other != name || item.approved.is_some());
            items.entry(name).and_modify(|item| item.listed = false);
        }
        Step::Back(name) => {
            if let Some(item) = items.get_mut(&name).filter(|item| item.approved.is_some()) {
                (item.pending, item.listed) = (None, true);
            }
        }
        Step::Review(name, text) => {
            if let Some(item) = items.get_mut(&name).filter(|item| item.pending == Some(text)) {
                (item.approved, item.pending) = (Some(text), None);
            }
        }
    }
}

fn take(state: &OperatorState, step: &Step) {
    let change = match *step {
        Step::Approved(name, text) => approved(NAMES[name], TEXTS[text]),
        Step::Pending(name, text) => pending(NAMES[name], TEXTS[text]),
        Step::Gone(name) => gone(NAMES[name]),
        Step::Back(name) => back(NAMES[name]),
        Step::Review(name, text) => {
            state.approve_items("git", &[reviewed("tool", NAMES[name], TEXTS[text])]).unwrap();
            return;
        }
    };
    state.record_items("git", &[change], false).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn items_match_a_simple_model_after_any_steps(steps in prop::collection::vec(step(), 0..20)) {
        let store = Store::nowhere();
        let mut expected = BTreeMap::new();
        for step in steps {
            let before = expected.clone();
            expect(&mut expected, &step);
            let (changed, ()) = changes(store.state(), |state| take(state, &step));
            // Only a review is a decision.
            let decided = matches!(step, Step::Review(..)) && before != expected;
            prop_assert_eq!(changed, decided, "{:?}", step);
        }
        let text = |text: usize| TEXTS[text];
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(name, item)| {
                tool(NAMES[name], item.approved.map(text), item.pending.map(text), item.listed)
            })
            .collect();
        prop_assert_eq!(items(store.state(), "git"), expected);
    }
}
