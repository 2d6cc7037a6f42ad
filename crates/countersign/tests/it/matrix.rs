//! A matrix of the protocol's capabilities by surface, with the tests that show each; those of the
//! gateway crate, whose servers and clients are in one process, begin with its name. The table in
//! `docs/protocol.md` is written from this one, without the tests.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::Command;

use crate::tidy::{self, Source};

/// The tests of views in the gateway crate.
const GATEWAY_TESTS: &str = "crates/gateway/tests/front";

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
            Shown(&["gateway::calls::definitions_and_results_come_byte_for_byte"]),
            Shown(&["wrap::smoke_messages_pass_byte_for_byte_in_both_directions"]),
            ShownAs(
                "as `server__tool`",
                &["gateway::all_servers::names_of_all_servers_fit_and_stay_the_same"],
            ),
            ShownAs(
                "with two keys",
                &["gateway::calls::the_text_of_a_call_survives_in_both_directions_on_every_view"],
            ),
        ],
    },
    Row {
        capability: "progress, cancellation",
        cells: [
            Shown(&[
                "gateway::calls::progress_comes_under_the_clients_own_token",
                "gateway::calls::the_reason_of_a_cancellation_reaches_the_server",
            ]),
            Shown(&["wrap::progress_cancellation_and_questions_pass"]),
            Shown(&[
                "gateway::calls::progress_comes_under_the_clients_own_token",
                "gateway::calls::a_cancelled_call_is_cancelled_upstream",
            ]),
            Shown(&[
                "gateway::calls::progress_comes_under_the_clients_own_token",
                "gateway::calls::a_cancelled_call_is_cancelled_upstream",
            ]),
        ],
    },
    Row {
        capability: "sampling, elicitation, roots",
        cells: [
            Shown(&["gateway::connections::each_client_is_asked_what_its_own_call_needs"]),
            Shown(&["wrap::progress_cancellation_and_questions_pass"]),
            Shown(&[
                "gateway::connections::each_client_is_asked_what_its_own_call_needs",
                "hostile::server::questions::a_question_names_its_server_where_a_client_sees_several",
            ]),
            Shown(&[
                "gateway::connections::a_client_of_the_two_key_tools_is_asked_too",
                "linked::each_of_four_clients_is_asked_for_itself",
            ]),
        ],
    },
    Row {
        capability: "error -32042 (URL elicitation)",
        cells: [
            Shown(&["gateway::calls::errors_of_a_server_and_unknown_names_are_told_apart"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&["gateway::calls::errors_of_a_server_and_unknown_names_are_told_apart"]),
            Shown(&["linked::a_request_to_open_an_address_reaches_the_client"]),
        ],
    },
    Row {
        capability: "`elicitation/complete`",
        cells: [
            Shown(&[
                "gateway::notices::a_client_with_its_own_connection_hears_everything_within_its_call",
            ]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "gateway::notices::a_client_of_all_servers_hears_the_protocols_notifications_and_no_others",
            ]),
            Shown(&["linked::a_request_to_open_an_address_reaches_the_client"]),
        ],
    },
    Row {
        capability: "`roots/list_changed`",
        cells: [
            Shown(&[
                "gateway::notices::a_client_with_its_own_connection_hears_everything_within_its_call",
            ]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&["linked::what_a_client_declares_and_announces_reaches_the_server"]),
            Shown(&["linked::what_a_client_declares_and_announces_reaches_the_server"]),
        ],
    },
    Row {
        capability: "resources: read",
        cells: [
            Shown(&["gateway::methods::requests_reach_their_server_unchanged_on_each_view"]),
            Shown(&["wrap::everything_besides_tools_passes_unchanged_and_is_recorded"]),
            Shown(&["gateway::methods::requests_reach_their_server_unchanged_on_each_view"]),
            ShownAs(
                "by link",
                &["linked::links_name_their_server_and_are_read_by_clients_and_models"],
            ),
        ],
    },
    Row {
        capability: "resources: list",
        cells: [
            Shown(&["gateway::methods::the_lists_of_one_server_come_byte_for_byte"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "gateway::all_servers::resources_of_all_servers_come_in_pages_that_belong_to_their_caller",
            ]),
            Not("empty: results name what matters"),
        ],
    },
    Row {
        capability: "resource templates",
        cells: [
            Shown(&["gateway::methods::the_lists_of_one_server_come_byte_for_byte"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "gateway::all_servers::the_lists_of_all_servers_come_as_one_with_addresses_that_lead_back",
            ]),
            Not("empty: results name what matters"),
        ],
    },
    Row {
        capability: "subscriptions, `resources/updated`",
        cells: [
            Shown(&[
                "gateway::notices::updates_reach_those_who_subscribed_and_nobody_else",
                "upstreams::a_server_that_lost_its_session_is_subscribed_to_again",
            ]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "gateway::notices::updates_of_all_servers_reach_subscribers_under_the_address_they_used",
            ]),
            Not("nothing is listed"),
        ],
    },
    Row {
        capability: "prompts: list, get",
        cells: [
            Shown(&[
                "gateway::methods::requests_reach_their_server_unchanged_on_each_view",
                "gateway::methods::the_lists_of_one_server_come_byte_for_byte",
            ]),
            Shown(&["wrap::everything_besides_tools_passes_unchanged_and_is_recorded"]),
            ShownAs(
                "as `server__prompt`",
                &["gateway::methods::requests_reach_their_server_unchanged_on_each_view"],
            ),
            ShownAs(
                "as `server__prompt`",
                &["linked::smoke_people_use_the_prompts_of_all_servers"],
            ),
        ],
    },
    Row {
        capability: "completion",
        cells: [
            Shown(&["gateway::methods::requests_reach_their_server_unchanged_on_each_view"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&["gateway::methods::requests_reach_their_server_unchanged_on_each_view"]),
            Not("not declared"),
        ],
    },
    Row {
        capability: "logging",
        cells: [
            Shown(&["gateway::notices::log_messages_reach_each_client_from_its_own_level_on"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&["gateway::notices::a_log_level_reaches_all_servers_and_those_that_come_later"]),
            Not("not declared"),
        ],
    },
    Row {
        capability: "`list_changed` of tools",
        cells: [
            Shown(&["gateway::list_changes::clients_are_told_when_their_list_changes"]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "gateway::list_changes::clients_are_told_when_their_list_changes",
                "tokens::a_changed_list_is_announced_only_to_those_who_see_the_change",
            ]),
            Not("the seven tools never change"),
        ],
    },
    Row {
        capability: "`list_changed` of prompts and resources",
        cells: [
            Shown(&[
                "gateway::list_changes::changed_prompts_and_templates_are_hidden_and_locked_until_approved",
                "gateway::notices::a_change_of_resources_is_told_once_to_each_client_that_sees_the_server",
            ]),
            Shown(&["wrap::notifications_lists_and_subscriptions_pass_in_both_directions"]),
            Shown(&[
                "gateway::list_changes::a_change_is_told_once_to_each_client_of_all_servers_that_sees_it",
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
                "gateway::methods::requests_reach_their_server_unchanged_on_each_view",
                "gateway::notices::a_client_with_its_own_connection_hears_everything_within_its_call",
            ]),
            Shown(&["wrap::everything_besides_tools_passes_unchanged_and_is_recorded"]),
            Not("-32601"),
            Not("-32601"),
        ],
    },
    Row {
        capability: "`extensions` and `experimental` of the client",
        cells: [
            Shown(&["gateway::own_lists::extensions_of_a_client_reach_the_server"]),
            Shown(&["wrap::smoke_messages_pass_byte_for_byte_in_both_directions"]),
            Shown(&[
                "gateway::own_lists::a_client_of_all_servers_lists_what_is_there_for_its_capabilities_from_the_start",
            ]),
            Shown(&["linked::what_a_client_declares_and_announces_reaches_the_server"]),
        ],
    },
    Row {
        capability: "`extensions` and `experimental` of the server",
        cells: [
            Shown(&["gateway::methods::each_view_declares_what_its_servers_offer"]),
            Shown(&["wrap::smoke_messages_pass_byte_for_byte_in_both_directions"]),
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
            ShownAs("unchecked", &["wrap::smoke_messages_pass_byte_for_byte_in_both_directions"]),
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

/// Returns the names of the tests in a file of the gateway crate.
fn gateway_tests(file: &Source) -> Vec<String> {
    let module = file.path.file_stem().unwrap().to_str().unwrap();
    let tests = file.text.split("#[tokio::test]\nasync fn ").skip(1);
    let names = tests.filter_map(|test| test.split('(').next());
    names.map(|name| format!("gateway::{module}::{name}")).collect()
}

/// Returns the names of all tests of this program and of the gateway's views.
fn all_tests() -> BTreeSet<String> {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).arg("--list").output().unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    let tests = list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned);
    let files = tidy::rust_files();
    let views = files.iter().filter(|file| file.path.starts_with(GATEWAY_TESTS));
    tests.chain(views.flat_map(gateway_tests)).collect()
}

#[test]
fn smoke_every_mark_is_shown_by_a_test_that_exists() {
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
