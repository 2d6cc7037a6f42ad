//! `GET /tools`: every tool of every server, and the reason one cannot be called.

pub(crate) mod change;
pub(crate) mod targets;

use axum::Json;
use axum::extract::State;
use domain::catalog::{Catalog, Hit, Server, ToolFilter};
use domain::policy::{Addressee, Lock};
use domain::tool::{Tool, ToolName};
use domain::trust::ItemKind;
use domain::{Caller, Code, Refusal};
use gateway::front::discovery;
use search::{MatchedWord, SearchQuery};
use serde::Deserialize;
use serde_json::json;
use store::state::ServerItem;
use text::{near, visible};
use utoipa::IntoParams;

use crate::Admin;
use crate::answer::{Path, Query, Refused};
use crate::form::{self, form};
use crate::ledger::{limit, one_of};
use crate::review::{self, Review};
use crate::server::change::kind;
use crate::view::{
    ExplainedWord, SearchExplanation, SwitchedTool, TargetPlanRule, ToolEntry, ToolList,
    ToolReview, Verbatim, words,
};

/// The maximum number of search results; a list without a query holds every tool.
const SEARCH_RESULTS_MAX: usize = 100;

/// The maximum number of search matches before the filters apply.
const MATCHES_MAX: usize = 10_000;

#[derive(Deserialize, IntoParams)]
pub(crate) struct ListQuery {
    /// Text to search for; callable tools come first, the best match at the top.
    q: Option<String>,
    /// Tools of this server.
    server: Option<String>,
    /// Tools with this status.
    #[param(inline, value_type = Option<form::Lock>)]
    status: Option<String>,
    /// Adds the reasons for each score of a search.
    explain: Option<bool>,
    /// The maximum number of search results.
    #[param(inline, value_type = Option<ResultsLimit>)]
    limit: Option<usize>,
}

form!(
    ResultsLimit =
        { words::count_between(1, SEARCH_RESULTS_MAX).default(Some(SEARCH_RESULTS_MAX.into())) }
);

pub(crate) async fn list(
    State(admin): State<Admin>,
    Query(query): Query<ListQuery>,
) -> Result<Json<ToolList>, Refused> {
    let status = one_of("status", query.status.as_deref(), &Lock::words(), |word| word)?;
    let limit = limit(query.limit, SEARCH_RESULTS_MAX, SEARCH_RESULTS_MAX)?;
    admin.gateway.first_settled(&Caller::admin()).await;
    let vector = match &query.q {
        Some(text) => admin.gateway.query_vector(text).await,
        None => None,
    };
    let catalog = admin.gateway.catalog();
    let searched = query.q.as_deref().map(|text| SearchQuery { text, vector: vector.as_ref() });
    let found = match searched {
        Some(searched) => found(&catalog, searched, query.explain == Some(true)),
        None => every(&catalog),
    };
    let tools: Vec<ToolEntry> = found
        .into_iter()
        .filter(|found| query.server.as_ref().is_none_or(|name| **name == *found.server.name))
        .filter(|found| status.is_none_or(|status| status == found.lock().as_str()))
        .take(if query.q.is_some() { limit } else { usize::MAX })
        .map(|mut found| {
            let explanation = found.explanation.take();
            ToolEntry { explanation, ..found.entry() }
        })
        .collect();
    let total = tools.len();
    Ok(Json(ToolList { tools, total }))
}

#[derive(Deserialize, IntoParams)]
pub(crate) struct ShowQuery {
    /// The kind of item that the name refers to.
    #[param(inline, value_type = Option<form::ItemKind>)]
    kind: Option<String>,
}

/// Returns one tool, or with `kind` another item of its server, as a reviewer sees it.
pub(crate) async fn show(
    State(admin): State<Admin>,
    Path((server, tool)): Path<(String, String)>,
    Query(query): Query<ShowQuery>,
) -> Result<Json<ToolReview>, Refused> {
    admin.gateway.first_settled(&Caller::admin()).await;
    let catalog = admin.gateway.catalog();
    let name = ToolName { server, tool };
    let kind = kind(query.kind.as_deref())?;
    if kind != ItemKind::Tool {
        return show_item(&admin, kind, &name).await;
    }
    let Some((server, tool)) = catalog.tool(&name) else {
        let near = catalog.near(&Caller::admin(), &name);
        return Err(not_found(kind, &name, &near).into());
    };
    let items = admin.gateway.items(&server.name).await?;
    let item = items.iter().find(|item| is(item, kind, &name.tool));
    let review = item.and_then(Review::of);
    let review = review.unwrap_or_else(|| Review::unknown(tool.definition().get()));
    let remediation = match server.lock(&tool.name) {
        Lock::Locked(status) => Some(status.remediation(Addressee::Person).to_owned()),
        Lock::Callable => None,
    };
    Ok(Json(ToolReview::Tool(Box::new(ToolEntry {
        remediation,
        approved_fingerprint: review.approved.map(|approved| approved.fingerprint.clone()),
        change: review.change.map(|change| change.as_str().to_owned()),
        change_hash: review.change_hash(),
        diff: review.difference(),
        warnings: Some(review.warnings(&server.name, &review::known_names(&catalog))),
        definition: Some(Verbatim::of(review.text)),
        visible: Some(review.visible()),
        fingerprint: Some(review.fingerprint),
        targets: Some(plan(server, tool)),
        ..Match { server, tool, score: None, explanation: None }.entry()
    }))))
}

/// Returns the rules that name the resources of the tool's calls.
fn plan(server: &Server, tool: &Tool) -> Vec<TargetPlanRule> {
    let plan = server.listing.plan(&tool.name);
    let steps = plan.map(|plan| plan.targets.steps()).unwrap_or_default();
    steps.into_iter().map(TargetPlanRule::from).collect()
}

async fn show_item(
    admin: &Admin,
    kind: ItemKind,
    name: &ToolName,
) -> Result<Json<ToolReview>, Refused> {
    let catalog = admin.gateway.catalog();
    discovery::server(&catalog, &Caller::admin(), &name.server)?;
    let items = admin.gateway.items(&name.server).await?;
    let known = review::known_names(&catalog);
    let item = items.iter().find(|item| is(item, kind, &name.tool));
    let entry = item.and_then(|item| review::entry(&name.server, item, &known));
    match entry {
        Some(entry) => Ok(Json(ToolReview::Item(Box::new(entry)))),
        None => Err(not_found(kind, name, &[]).into()),
    }
}

fn is(item: &ServerItem, kind: ItemKind, name: &str) -> bool {
    item.kind == kind.as_str() && item.name == name
}

fn not_found(kind: ItemKind, name: &ToolName, near: &[String]) -> Refusal {
    let (kind, hint) = (kind.as_str(), near::hint(near));
    Refusal::new(Code::NotFound, format!("{kind} '{name}' not found{hint}"))
        .with(json!({"near": near}))
}

/// Returns a tool after a person has switched it on or off.
fn switched(admin: &Admin, name: ToolName) -> SwitchedTool {
    let catalog = admin.gateway.catalog();
    match catalog.tool(&name) {
        Some((server, tool)) => SwitchedTool::Listed(Box::new(
            Match { server, tool, score: None, explanation: None }.entry(),
        )),
        None => SwitchedTool::Unlisted { name: name.to_string(), server: name.server },
    }
}

/// A tool of the list, with a score if it comes from a search.
struct Match<'a> {
    server: &'a Server,
    tool: &'a Tool,
    score: Option<f32>,
    explanation: Option<SearchExplanation>,
}

fn every(catalog: &Catalog) -> Vec<Match<'_>> {
    let tools = catalog.servers().flat_map(|server| {
        server.tools().map(|(tool, _)| Match { server, tool, score: None, explanation: None })
    });
    tools.collect()
}

/// Returns the tools that match, in search order with callable ones first. Filters and limit apply
/// afterwards.
fn found<'a>(catalog: &'a Catalog, query: SearchQuery<'_>, explain: bool) -> Vec<Match<'a>> {
    let (admin, all) = (Caller::admin(), ToolFilter::default());
    let locked = catalog.search_locked(&admin, query, MATCHES_MAX, all).into_iter();
    let locked = locked.map(|hit| (hit.server, hit.tool));
    let locked =
        locked.map(|(server, tool)| Match { server, tool, score: None, explanation: None });
    if !explain {
        let callable = catalog.search(&admin, query, MATCHES_MAX, all).into_iter();
        let callable = callable.map(|Hit { server, tool, score, .. }| Match {
            server,
            tool,
            score: Some(score),
            explanation: None,
        });
        return callable.chain(locked).collect();
    }
    // The words are looked up for each result, so there are no more of them than are shown.
    let callable = catalog.search_explained(&admin, query, SEARCH_RESULTS_MAX, all);
    let callable = (1..).zip(callable).map(|(place, (hit, words))| {
        let explanation = Some(explanation(place, &hit, words));
        Match { server: hit.server, tool: hit.tool, score: Some(hit.score), explanation }
    });
    callable.chain(locked).collect()
}

fn explanation(place: usize, hit: &Hit<'_>, words: Vec<MatchedWord>) -> SearchExplanation {
    let words = words.into_iter().map(|MatchedWord { word, term, score }| ExplainedWord {
        word,
        found: term,
        score: hundredths(score),
    });
    SearchExplanation { place, similarity: hit.similarity.map(hundredths), words: words.collect() }
}

fn hundredths(score: f32) -> f64 {
    (f64::from(score) * 100.0).round() / 100.0
}

impl Match<'_> {
    fn lock(&self) -> Lock {
        self.server.lock(&self.tool.name)
    }

    /// Returns the description; unapproved text is shown with hidden characters visible.
    fn description(&self) -> String {
        let text = description(self.tool.description_json());
        match self.lock() {
            Lock::Locked(status) if status.distrusts_text() => visible(&text).into_owned(),
            Lock::Locked(_) | Lock::Callable => text,
        }
    }

    fn entry(&self) -> ToolEntry {
        let Match { server, tool, score, .. } = self;
        ToolEntry {
            name: format!("{}:{}", server.name, tool.name),
            server: server.name.to_string(),
            source: tool.source.to_string(),
            description: self.description(),
            annotations: tool.annotations_json().map(Verbatim::of),
            class: tool.hints.class().as_str().to_owned(),
            unverified: tool.hints.unverified(),
            call_with: tool.hints.class().variant().to_owned(),
            status: self.lock().as_str().to_owned(),
            score: score.map(hundredths),
            ..ToolEntry::default()
        }
    }
}

/// Reads a description. A literal that is no text is shown as written: a reviewer must see whatever
/// an agent is sent.
fn description(literal: Option<&str>) -> String {
    let literal = literal.unwrap_or("\"\"");
    serde_json::from_str(literal).unwrap_or_else(|_| literal.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_that_is_no_text_is_shown_as_written() {
        for (literal, shown) in [
            (None, ""),
            (Some(r#""Reads\u0041""#), "ReadsA"),
            (Some(r#"{"text":"hidden"}"#), r#"{"text":"hidden"}"#),
            (Some(r#""\ud800 hidden""#), r#""\ud800 hidden""#),
        ] {
            assert_eq!(description(literal), shown);
        }
    }
}
