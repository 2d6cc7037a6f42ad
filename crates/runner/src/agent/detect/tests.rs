//! Programs that exist, are missing, fail, hang or are too old.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn script(dir: &Path, name: &str, body: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

async fn detect(dir: &Path, provider: Provider) -> Result<InstalledAgent, AgentError> {
    let search = Search { path: Some(dir.as_os_str()), ..Search::default() };
    InstalledAgent::detect(provider, &search).await
}

const OLD_CLAUDE: &str = r#"case $1 in
--version) echo "2.0.9 (Claude Code)";;
*) echo "--output-format <f> (choices: text, \"stream-json\")  --verbose --mcp-config --allowedTools, --x";;
esac"#;

#[tokio::test]
async fn a_missing_program_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let error = detect(dir.path(), Provider::Claude).await.unwrap_err();
    let words = "program 'claude' not found: install it on PATH, or set options.command";
    assert_eq!(error.to_string(), words);
    assert_eq!(error.code(), domain::Code::AgentFailed);
    let gone = dir.path().join("gone");
    let search = Search { command: Some(&gone), ..Search::default() };
    let error = InstalledAgent::detect(Provider::Claude, &search).await.unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
    std::fs::write(dir.path().join("plain"), "x").unwrap();
    let plain = dir.path().join("plain");
    let search = Search { command: Some(&plain), ..Search::default() };
    let error = InstalledAgent::detect(Provider::Claude, &search).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot run "), "{error}");
    assert!(error.to_string().ends_with(": it is not an executable file"), "{error}");
}

#[tokio::test]
async fn a_program_that_fails_is_quoted() {
    let dir = tempfile::tempdir().unwrap();
    script(dir.path(), "gemini", "echo no node here >&2; exit 3");
    let error = detect(dir.path(), Provider::Gemini).await.unwrap_err().to_string();
    assert!(error.contains("--version failed: exit status: 3: no node here"), "{error}");
    script(dir.path(), "claude", "echo hello");
    let error = detect(dir.path(), Provider::Claude).await.unwrap_err().to_string();
    assert!(error.contains("the output contains no version"), "{error}");
}

#[tokio::test]
async fn a_program_that_hangs_is_given_up_with_its_children() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let body = format!("sleep 600 & echo $! >> {}; wait", pids.display());
    let program = script(dir.path(), "claude", &body);
    // The clock advances once the child exists.
    let asked = tokio::spawn(async move {
        let asker = Asker { program: &program, supervisor: None };
        asker.ask(&["--version"]).await.map(|_| ())
    });
    let pid = loop {
        let text = std::fs::read_to_string(&pids).unwrap_or_default();
        if let Ok(pid) = text.trim().parse::<i32>() {
            break Pid::from_raw(pid).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    tokio::time::pause();
    tokio::time::advance(QUESTION_TIMEOUT + Duration::from_secs(1)).await;
    let error = asked.await.unwrap().unwrap_err().to_string();
    assert!(error.ends_with("did not respond to --version within 30 s"), "{error}");
    tokio::time::resume();
    for _ in 0..2000 {
        if !is_alive(pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("its child lives on");
}

/// A zombie that was not waited for counts as dead.
fn is_alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[tokio::test]
async fn an_older_program_coexists_and_one_without_events_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    script(dir.path(), "claude", OLD_CLAUDE);
    let installed = detect(dir.path(), Provider::Claude).await.unwrap();
    assert_eq!(installed.version(), "2.0.9");
    let lacks = "--strict-mcp-config, --tools, --setting-sources";
    let reason = format!("version 2.0.9 does not support {lacks}");
    assert_eq!(installed.isolation(), &Isolation::Coexistence { reason });
    script(dir.path(), "claude", "echo 1.0.0");
    let error = detect(dir.path(), Provider::Claude).await.unwrap_err().to_string();
    assert!(
        error.ends_with(
            "1.0.0 is too old: it does not support --output-format, stream-json, --verbose"
        ),
        "{error}"
    );
}

#[tokio::test]
async fn codex_is_found_behind_its_script_and_needs_its_model_catalog() {
    let dir = tempfile::tempdir().unwrap();
    let modules = dir.path().join("lib/node_modules/@openai");
    let wrapper = script(&modules, "codex/bin/codex.js", "echo wrapper; exit 9");
    let triple = format!("{}-unknown-{}-musl", std::env::consts::ARCH, platform_os());
    let native = format!("codex-{}-{}/vendor/{triple}/bin/codex", platform_os(), platform_cpu());
    let answers = |models: &str| {
        format!(
            "case \"$*\" in\n--version) echo codex-cli 0.166.0;;\n'exec --help') echo '--json \
             --config <k> --skip-git-repo-check --sandbox --ephemeral --ignore-user-config \
             --ignore-rules --disable';;\n'debug models') echo '{models}';;\nesac"
        )
    };
    let whole = r#"{"models":[{"slug":"m","shell_type":"x","apply_patch_tool_type":"y","supports_search_tool":true,"kept":1}]}"#;
    script(&modules, &native, &answers(whole));
    std::fs::create_dir(dir.path().join("bin")).unwrap();
    std::os::unix::fs::symlink(&wrapper, dir.path().join("bin/codex")).unwrap();
    let bin = dir.path().join("bin");
    let installed = detect(&bin, Provider::Codex).await.unwrap();
    assert_eq!(installed.program(), modules.join(&native).canonicalize().unwrap());
    assert_eq!(installed.isolation(), &Isolation::Full);
    let tamed: serde_json::Value = serde_json::from_slice(installed.catalogue()).unwrap();
    let model = &tamed["models"][0];
    assert_eq!((&model["shell_type"], &model["kept"]), (&"disabled".into(), &1.into()));
    for (models, why) in [
        (r#"{"models":[{"slug":"m","shell_type":"x"}]}"#, "no apply_patch_tool_type for m"),
        (r#"{"models":[]}"#, "has no models"),
        ("rubbish", "is not valid JSON"),
    ] {
        script(&modules, &native, &answers(models));
        let installed = detect(&bin, Provider::Codex).await.unwrap();
        let Isolation::Coexistence { reason } = installed.isolation() else { panic!("{models}") };
        assert!(reason.contains(why), "{reason}");
    }
}

#[test]
fn versions_are_found_in_what_programs_print() {
    for (text, version) in [
        ("2.1.325 (Claude Code)", Some("2.1.325")),
        ("WARNING: 10.2\ncodex-cli 0.166.0\n", Some("0.166.0")),
        ("v1.18.33-beta.1", Some("1.18.33")),
        ("0.61", None),
        ("", None),
    ] {
        assert_eq!(version_of(text).as_deref(), version, "{text}");
    }
    assert!(numbers("1.9.0") < OPENCODE_ISOLATING);
    assert!(numbers("2.0.0") > OPENCODE_ISOLATING);
}
