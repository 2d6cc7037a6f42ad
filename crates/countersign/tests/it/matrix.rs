//! A matrix of the protocol's capabilities by surface, with the tests that show each. The table in
//! `docs/protocol.md` is written from this one, without the tests.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::Command;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol.md");
const START: &str = "<!-- Written by matrix.rs in the tests of the product: UPDATE_DOCS=1. -->\n";
const END: &str = "<!-- End of what matrix.rs writes. -->\n";

const SURFACES: [&str; 4] =
    ["`/mcp/s/<server>`, `mcp --server`", "`wrap`", "`/mcp/all`, `mcp --all`", "`/mcp`, `mcp`"];

/// One capability on one surface.
enum Cell {
    /// It passes, as these tests show.
    Shown(&'static [&'static str]),
    /// It passes in another form.
    ShownAs(&'static str, &'static [&'static str]),
    /// It does not pass, for this reason.
    Not(&'static str),
}

use Cell::{Not, Shown, ShownAs};

struct Row {
    capability: &'static str,
    /// One cell for each surface.
    cells: [Cell; 4],
}

const ROWS: &[Row] = &[
    Row {
        capability: "tools: list, call",
        cells: [
            Shown(&["passthrough::definitions_and_results_come_byte_for_byte"]),
            Shown(&["wrap::messages_pass_byte_for_byte_in_both_directions"]),
            ShownAs(
                "as `server__tool`",
                &["passthrough::names_in_the_view_of_all_fit_and_stay_the_same"],
            ),
            ShownAs("with two keys", &["results::bytes_survive_in_both_directions"]),
        ],
    },
    Row {
        capability: "progress, cancellation",
        cells: [
            Shown(&[
                "passthrough::progress_and_cancellation_are_relayed",
                "forwarding::the_reason_of_a_cancellation_reaches_the_server",
            ]),
            Shown(&["wrap::progress_cancellation_and_questions_pass"]),
            Shown(&["passthrough::progress_and_cancellation_are_relayed"]),
            Shown(&[
                "results::progress_comes_under_the_clients_own_token",
                "results::a_cancelled_call_is_cancelled_upstream",
            ]),
        ],
    },
    Row {
        capability: "sampling, elicitation, roots",
        cells: [
            Shown(&["sharing::each_client_is_asked_what_its_own_call_needs"]),
            Shown(&["wrap::progress_cancellation_and_questions_pass"]),
            Shown(&[
                "all_servers::sampling_elicitation_and_roots_of_four_clients_cross_on_no_view",
                "hostile::server::questions::a_question_names_its_server_where_a_client_sees_several",
            ]),
            Shown(&[
                "sharing::a_client_of_the_two_key_tools_is_asked_too",
                "linked::each_of_four_clients_is_asked_for_itself",
            ]),
        ],
    },
    Row {
        capability: "error -32042 (URL elicitation)",
        cells: [
            Shown(&["passthrough::what_a_server_answers_comes_through_unchanged"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&["passthrough::what_a_server_answers_comes_through_unchanged"]),
            Shown(&["linked::a_request_to_open_an_address_reaches_the_client"]),
        ],
    },
    Row {
        capability: "`elicitation/complete`",
        cells: [
            Shown(&["offers::a_client_with_its_own_connection_hears_everything_within_its_call"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "all_servers::a_client_of_all_servers_hears_the_protocols_notifications_and_no_others",
            ]),
            Shown(&["linked::a_request_to_open_an_address_reaches_the_client"]),
        ],
    },
    Row {
        capability: "`roots/list_changed`",
        cells: [
            Shown(&["offers::a_client_with_its_own_connection_hears_everything_within_its_call"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&["linked::what_a_client_declares_and_announces_reaches_the_server"]),
            Shown(&["linked::what_a_client_declares_and_announces_reaches_the_server"]),
        ],
    },
    Row {
        capability: "resources: read",
        cells: [
            Shown(&["offers::requests_and_lists_pass_unchanged"]),
            Shown(&["wrap::everything_besides_tools_passes_unchanged_and_is_recorded"]),
            Shown(&["all_servers::all_servers_get_their_own_names_and_addresses_back"]),
            ShownAs(
                "by link",
                &["linked::links_name_their_server_and_are_read_by_clients_and_models"],
            ),
        ],
    },
    Row {
        capability: "resources: list",
        cells: [
            Shown(&["offers::requests_and_lists_pass_unchanged"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "all_servers::all_servers_resources_come_in_pages_that_belong_to_their_caller",
            ]),
            Not("empty: results name what matters"),
        ],
    },
    Row {
        capability: "resource templates",
        cells: [
            Shown(&["offers::requests_and_lists_pass_unchanged"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "all_servers::all_servers_offer_their_prompts_resources_and_templates_in_one_list",
            ]),
            Not("empty: results name what matters"),
        ],
    },
    Row {
        capability: "subscriptions, `resources/updated`",
        cells: [
            Shown(&[
                "offers::updates_reach_those_who_subscribed_and_nobody_else",
                "upstreams::a_server_that_lost_its_session_is_subscribed_to_again",
            ]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "all_servers::updates_of_all_servers_reach_subscribers_under_the_address_they_used",
            ]),
            Not("nothing is listed"),
        ],
    },
    Row {
        capability: "prompts: list, get",
        cells: [
            Shown(&["offers::requests_and_lists_pass_unchanged"]),
            Shown(&["wrap::everything_besides_tools_passes_unchanged_and_is_recorded"]),
            ShownAs(
                "as `server__prompt`",
                &["all_servers::all_servers_get_their_own_names_and_addresses_back"],
            ),
            ShownAs("as `server__prompt`", &["linked::people_use_the_prompts_of_all_servers"]),
        ],
    },
    Row {
        capability: "completion",
        cells: [
            Shown(&["offers::requests_and_lists_pass_unchanged"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&["all_servers::all_servers_get_their_own_names_and_addresses_back"]),
            Not("not declared"),
        ],
    },
    Row {
        capability: "logging",
        cells: [
            Shown(&["offers::log_messages_reach_each_client_from_its_own_level_on"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&["all_servers::a_log_level_reaches_all_servers_and_those_that_come_later"]),
            Not("not declared"),
        ],
    },
    Row {
        capability: "`list_changed` of tools",
        cells: [
            Shown(&["passthrough::clients_are_told_when_their_list_changes"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "passthrough::clients_are_told_when_their_list_changes",
                "tokens::a_changed_list_is_announced_only_to_those_who_see_the_change",
            ]),
            Not("the seven tools never change"),
        ],
    },
    Row {
        capability: "`list_changed` of prompts and resources",
        cells: [
            Shown(&[
                "offers::changed_prompts_and_templates_are_hidden_and_locked_until_approved",
                "offers::a_change_of_resources_is_told_once_to_each_client_that_sees_the_server",
            ]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "all_servers::a_change_is_told_once_to_each_client_of_all_servers_that_sees_it",
            ]),
            ShownAs(
                "of prompts",
                &["linked::a_change_of_prompts_is_announced_once_and_reviewed_first"],
            ),
        ],
    },
    Row {
        capability: "a server's own methods and notifications",
        cells: [
            Shown(&[
                "offers::requests_and_lists_pass_unchanged",
                "offers::a_client_with_its_own_connection_hears_everything_within_its_call",
            ]),
            Shown(&["wrap::everything_besides_tools_passes_unchanged_and_is_recorded"]),
            Not("-32601"),
            Not("-32601"),
        ],
    },
    Row {
        capability: "`extensions` and `experimental` of the client",
        cells: [
            Shown(&["offers::extensions_of_a_client_reach_the_server"]),
            Shown(&["wrap::messages_pass_byte_for_byte_in_both_directions"]),
            Shown(&[
                "all_servers::a_client_of_all_servers_lists_what_is_there_for_its_capabilities_from_the_start",
            ]),
            Shown(&["linked::what_a_client_declares_and_announces_reaches_the_server"]),
        ],
    },
    Row {
        capability: "`extensions` and `experimental` of the server",
        cells: [
            Shown(&["offers::a_view_of_one_server_has_that_servers_capabilities"]),
            Shown(&["wrap::messages_pass_byte_for_byte_in_both_directions"]),
            Not("they belong to one server"),
            Not("they belong to one server"),
        ],
    },
    Row {
        capability: "tools for apps only (MCP Apps)",
        cells: [
            Shown(&["linked::tools_for_apps_are_not_offered_to_models"]),
            Shown(&["wrap::tools_for_apps_pass"]),
            Shown(&["linked::tools_for_apps_are_not_offered_to_models"]),
            Not("not for models"),
        ],
    },
    Row {
        capability: "resumption of broken streams",
        cells: [
            Shown(&[
                "resumption::a_call_outlives_its_connection_and_is_made_once",
                "resumption::the_typescript_sdk_resumes_a_call_whose_connection_broke",
            ]),
            Not("stdio"),
            Shown(&["resumption::every_view_resumes"]),
            Shown(&["resumption::every_view_resumes"]),
        ],
    },
    Row {
        capability: "tasks",
        cells: [
            Not("tools that require them are left out"),
            ShownAs("unchecked", &["wrap::messages_pass_byte_for_byte_in_both_directions"]),
            Not("tools that require them are left out"),
            Not("tools that require them are left out"),
        ],
    },
];

impl Cell {
    fn mark(&self) -> String {
        match self {
            Cell::Shown(_) => "✓".to_owned(),
            Cell::ShownAs(form, _) => format!("✓ {form}"),
            Cell::Not(reason) => format!("– {reason}"),
        }
    }

    fn tests(&self) -> &'static [&'static str] {
        match self {
            Cell::Shown(tests) | Cell::ShownAs(_, tests) => tests,
            Cell::Not(_) => &[],
        }
    }
}

/// Writes the matrix as a table.
fn table() -> String {
    let mut text = format!("\n| | {} |\n|---|---|---|---|---|\n", SURFACES.join(" | "));
    for Row { capability, cells } in ROWS {
        let cells: Vec<String> = cells.iter().map(Cell::mark).collect();
        writeln!(text, "| {capability} | {} |", cells.join(" | ")).unwrap();
    }
    text + "\n"
}

/// Returns the names of all tests of this program.
fn all_tests() -> BTreeSet<String> {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).arg("--list").output().unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

#[test]
fn every_mark_is_shown_by_a_test_that_exists() {
    let known = all_tests();
    let named = ROWS.iter().flat_map(|row| &row.cells).flat_map(Cell::tests);
    let missing: Vec<&&str> = named.filter(|test| !known.contains(**test)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_page_has_the_matrix() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(START).expect("the page has the mark of the start");
    let (now, after) = rest.split_once(END).expect("the page has the mark of the end");
    let expected = table();
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(PAGE, [before, START, &expected, END, after].concat()).unwrap();
        return;
    }
    assert!(now == expected, "docs/protocol.md has another matrix: run with UPDATE_DOCS=1");
}
