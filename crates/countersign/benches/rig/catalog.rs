//! Tools and queries of the data sets in the repository, in any number.

use mcp::message::{Raw, to_raw};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Clone, Copy)]
pub(crate) enum Set {
    Scale,
    Bfcl,
}

#[derive(Deserialize)]
struct Tools {
    tools: Vec<Map<String, Value>>,
}

impl Set {
    pub(crate) fn named(name: &str) -> Set {
        match name {
            "scale" => Set::Scale,
            "bfcl" => Set::Bfcl,
            other => panic!("no such set: {other}"),
        }
    }

    /// Returns the tools of the set repeatedly, each copy under its own name.
    pub(crate) fn tools(self, count: usize) -> Vec<Raw> {
        let text = match self {
            Set::Scale => {
                include_str!("../../../search/testdata/retrieval/scale-livemcptool.json")
            }
            Set::Bfcl => include_str!("../../../search/testdata/retrieval/dev-bfcl.json"),
        };
        let set: Tools = serde_json::from_str(text).expect("the set is in the repository");
        let numbered = set.tools.iter().cycle().take(count).enumerate();
        numbered.map(|(place, tool)| copy(tool, place / set.tools.len())).collect()
    }
}

fn copy(tool: &Map<String, Value>, number: usize) -> Raw {
    let mut tool = tool.clone();
    // Some sets name the server as well, and two servers may have tools of the same name.
    let name = tool["name"].as_str().expect("a tool has a name").replace(':', "_");
    tool["name"] = if number == 0 { name } else { format!("{name}_{number}") }.into();
    to_raw(&tool)
}
