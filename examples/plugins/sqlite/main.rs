//! A plugin that is of use: questions to one SQLite database, opened read-only. Which file, and how
//! many rows an answer has at most, is in its config.

use std::process::ExitCode;

use plugin_sdk::{Input, Kind, Operation, Plugin, Request};
use rusqlite::types::{Value as Cell, ValueRef};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

const ROWS_MAX: u64 = 1000;

fn main() -> ExitCode {
    let query = Operation::new("query", "Runs one SQL statement that reads, and gives its rows.")
        .input(Input::new("sql", Kind::String, "The statement; values as ?1, ?2, …").required())
        .input(Input::new("values", Kind::Array, "The values, in their order.").default(json!([])))
        .output("columns", Kind::Array, "The names of the columns.")
        .output("rows", Kind::Array, "Each row as a list.")
        .output("more", Kind::Boolean, "Whether rows were left out.");
    let tables = Operation::new("tables", "Names the tables, each with its definition.").output(
        "tables",
        Kind::Array,
        "Objects with name and sql.",
    );
    Plugin::new("sqlite", "0.1.0")
        .describe("Questions to one SQLite database")
        .operation(query, |request| async move { query_rows(&request) })
        .operation(tables, |request| async move { list_tables(&request) })
        .run()
}

fn open(request: &Request) -> Result<Connection, String> {
    let file = request.config.get("database").and_then(Value::as_str);
    let file = file.ok_or("the config has no 'database'")?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(file, flags).map_err(|error| format!("{file}: {error}"))
}

fn query_rows(request: &Request) -> Result<Value, String> {
    let database = open(request)?;
    let values = match request.inputs.get("values") {
        None => Vec::new(),
        Some(Value::Array(values)) => values.iter().map(cell).collect::<Result<Vec<_>, _>>()?,
        Some(_) => return Err("'values' must be a list".to_owned()),
    };
    let rows_max = request.config.get("rows_max").and_then(Value::as_u64).unwrap_or(ROWS_MAX);
    let read = || -> Result<Value, rusqlite::Error> {
        let mut statement = database.prepare(request.text("sql").unwrap_or_default())?;
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut found = statement.query(rusqlite::params_from_iter(&values))?;
        let (mut rows, mut more) = (Vec::new(), false);
        while let Some(row) = found.next()? {
            if rows.len() as u64 == rows_max {
                more = true;
                break;
            }
            let cells = (0..columns.len()).map(|at| row.get_ref(at).map(json_of));
            rows.push(Value::Array(cells.collect::<Result<_, _>>()?));
        }
        Ok(json!({"columns": columns, "rows": rows, "more": more}))
    };
    request.text("sql")?;
    read().map_err(|error| error.to_string())
}

fn list_tables(request: &Request) -> Result<Value, String> {
    let database = open(request)?;
    let read = || -> Result<Vec<Value>, rusqlite::Error> {
        let mut statement = database
            .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
        let rows = statement.query_map([], |row| {
            let (name, sql): (String, Option<String>) = (row.get(0)?, row.get(1)?);
            Ok(json!({"name": name, "sql": sql}))
        })?;
        rows.collect()
    };
    Ok(json!({"tables": read().map_err(|error| error.to_string())?}))
}

fn cell(value: &Value) -> Result<Cell, String> {
    Ok(match value {
        Value::Null => Cell::Null,
        Value::Bool(flag) => Cell::Integer((*flag).into()),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Cell::Integer(integer),
            None => Cell::Real(number.as_f64().ok_or("a number is out of range")?),
        },
        Value::String(text) => Cell::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => return Err("a value must be a single one".to_owned()),
    })
}

fn json_of(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => integer.into(),
        ValueRef::Real(real) => real.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(blob) => format!("{} bytes", blob.len()).into(),
    }
}
