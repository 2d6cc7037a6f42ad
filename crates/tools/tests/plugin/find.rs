//! The search for plugins: their places, origins and faults. No plugin is started.

use std::os::unix::fs::{PermissionsExt, symlink};

use domain::config;
use serde_json::{Map, json};
use tools::plugin::{Places, PluginOrigin, Variables, find};

use crate::rig::{Rig, executable, manifest, place};

/// A plugin whose program leaves a mark when it is started.
fn plant(rig: &Rig, plugins: &std::path::Path, name: &str) -> std::path::PathBuf {
    let folder = place(plugins, name, &manifest(name));
    let mark = rig.project.join("started");
    executable(&folder.join(format!("awf-plugin-{name}")), &format!("touch {}", mark.display()));
    folder
}

fn configured(name: &str, path: Option<&str>, sha256: Option<String>) -> config::PluginConfig {
    let (name, path) = (name.to_owned(), path.map(str::to_owned));
    config::PluginConfig { name, path, config: Map::new(), env: Vec::new(), sha256 }
}

#[test]
fn plugins_are_found_in_their_places_and_none_is_started() {
    let rig = Rig::new();
    let root = rig.project.parent().unwrap();
    let (listed, project) = (root.join("listed"), &rig.project);
    for (plugins, name) in [
        (listed.clone(), "one"),
        (project.join("rel"), "two"),
        (project.join(".countersign/plugins"), "three"),
        (project.join(".awf/plugins"), "four"),
        (rig.own.clone(), "five"),
        (root.join("data/awf/plugins"), "six"),
        (project.join("elsewhere"), "seven"),
    ] {
        plant(&rig, &plugins, name);
    }
    let declared = "plugins: {seven: {path: elsewhere/seven, config: {a: 1}}}";
    std::fs::write(project.join(".countersign/plugins.yaml"), declared).unwrap();
    let variables = Variables {
        countersign_plugins_path: Some(format!("{}::rel", listed.display())),
        awf_plugins_path: Some("/nowhere".to_owned()),
        ..rig.variables()
    };
    let findings = find(&Places::new(&variables, project), &[]);
    let seen: Vec<_> = findings.plugins.iter().map(|found| (&*found.name, found.origin)).collect();
    use PluginOrigin::{Own, Project};
    let expected = [
        ("one", Own),
        ("two", Project),
        ("seven", Project),
        ("three", Project),
        ("four", Project),
        ("five", Own),
        ("six", Own),
    ];
    assert_eq!(seen, expected);
    for found in &findings.plugins {
        assert_eq!((&found.fault, &found.shadowed_by), (&None, &None), "{found:?}");
        assert_eq!(found.needs_approval(), found.origin == Project, "{}", found.name);
        assert_eq!(found.executable_sha256.len(), 64);
        assert!(
            found.executable.is_absolute() && found.identity().contains(&found.manifest_sha256)
        );
    }
    assert_eq!(findings.plugins[2].config["a"], 1);
    assert!(findings.faults.is_empty(), "{:?}", findings.faults);
    assert!(!project.join("started").exists());
}

#[test]
fn the_data_folder_defaults_to_the_one_in_the_users_home() {
    let rig = Rig::new();
    let home = rig.project.parent().unwrap().join("me");
    plant(&rig, &home.join(".local/share/awf/plugins"), "one");
    for xdg in [None, Some("relative".to_owned())] {
        let home = Some(home.to_str().unwrap().to_owned());
        let variables = Variables { xdg_data_home: xdg, home, ..Variables::default() };
        let findings = find(&Places::new(&variables, &rig.project), &[]);
        assert_eq!(findings.plugins.len(), 1);
    }
}

#[test]
fn the_first_plugin_of_a_name_shadows_the_others() {
    let mut rig = Rig::new();
    let (named, project) = (rig.project.join("named"), rig.project.join(".countersign/plugins"));
    let named = plant(&rig, &named, "same");
    let in_project = plant(&rig, &project, "same");
    let own = plant(&rig, &rig.own, "same");
    let findings = rig.find();
    let folders = |findings: &tools::plugin::Findings| {
        let both = findings.plugins.iter();
        both.map(|found| (found.folder.clone(), found.shadowed_by.clone())).collect::<Vec<_>>()
    };
    assert_eq!(
        folders(&findings),
        [(in_project.clone(), None), (own.clone(), Some(in_project.clone()))]
    );
    // A plugin that the person names by its path takes precedence over all that are found.
    rig.configured.push(configured("same", named.to_str(), None));
    let shadow = Some(named.clone());
    let expected = [(named, None), (in_project, shadow.clone()), (own, shadow)];
    assert_eq!(folders(&rig.find()), expected);
    assert_eq!(rig.find().plugins[0].origin, PluginOrigin::Own);
}

#[test]
fn faults_are_reported_with_the_plugin_that_has_them() {
    let mut rig = Rig::new();
    let own = rig.own.clone();
    let fault = |rig: &Rig, name: &str| rig.found(name).fault.unwrap_or_default();

    place(&own, "empty", "");
    assert!(fault(&rig, "empty").contains("plugin.yaml: empty"));
    place(&own, "bare", &manifest("bare"));
    let words = "no executable found, expected awf-plugin-bare or countersign-plugin-bare";
    assert!(fault(&rig, "bare").contains(words), "{}", fault(&rig, "bare"));
    let flat = plant(&rig, &own, "flat").join("awf-plugin-flat");
    std::fs::set_permissions(&flat, PermissionsExt::from_mode(0o644)).unwrap();
    assert!(fault(&rig, "flat").contains("not executable"));
    let folder = place(&own, "dir", &manifest("dir"));
    std::fs::create_dir(folder.join("awf-plugin-dir")).unwrap();
    assert!(fault(&rig, "dir").contains("not a file"));
    place(&own, "spaced", "name: a b\nversion: 1\n");
    assert!(fault(&rig, "spaced").contains("invalid name 'a b'"));
    place(&own, "big", &format!("# {}\n{}", "x".repeat(300_000), manifest("big")));
    assert!(fault(&rig, "big").contains("too large"));
    // A pipe without a writer must not block the search.
    let piped = own.join("piped");
    std::fs::create_dir(&piped).unwrap();
    let made = std::process::Command::new("mkfifo").arg(piped.join("plugin.yaml")).status();
    assert!(made.unwrap().success());
    assert!(fault(&rig, "piped").contains("not a file"));

    plant(&rig, &own, "pinned");
    rig.configured = vec![
        configured("pinned", None, Some("0".repeat(64))),
        configured("lost", None, None),
        configured("away", Some("/nowhere/away"), None),
        configured("relative", Some("x"), None),
    ];
    assert!(fault(&rig, "pinned").contains(&format!(", expected {}", "0".repeat(64))));
    assert!(fault(&rig, "away").contains("/nowhere"));
    assert!(fault(&rig, "relative").contains("must be absolute"));
    assert_eq!(rig.find().faults, ["the config names the plugin 'lost', which was not found"]);
    assert!(!rig.project.join("started").exists());
}

#[test]
fn the_manifest_names_the_plugin_and_the_folder_its_executable() {
    let mut rig = Rig::new();
    for (folder, file) in
        [("a", "awf-plugin-a"), ("b", "countersign-plugin-b"), ("awf-plugin-c", "awf-plugin-c")]
    {
        let name = format!("named-{}", &folder[folder.len() - 1..]);
        let path = place(&rig.own, folder, &manifest(&name));
        executable(&path.join(file), "exit 1");
        assert_eq!(rig.found(&name).fault, None, "{folder}");
        assert!(rig.found(&name).executable.ends_with(file));
    }
    let path = rig.own.join("a");
    rig.configured = vec![configured("other", path.to_str(), None)];
    let fault = rig.found("other").fault.unwrap();
    assert_eq!(fault, "its manifest has the name 'named-a', expected 'other'");
}

#[test]
fn a_link_out_of_the_project_is_still_the_projects() {
    let rig = Rig::new();
    let real = plant(&rig, rig.project.parent().unwrap(), "real");
    let plugins = rig.project.join(".awf/plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    symlink(&real, plugins.join("real")).unwrap();
    let found = rig.found("real");
    assert_eq!((found.origin, &found.folder), (PluginOrigin::Project, &real));
    assert_eq!(found.executable, real.join("awf-plugin-real"));
}

#[test]
fn an_approval_ends_with_any_change() {
    let rig = Rig::new();
    let folder = plant(&rig, &rig.project.join(".countersign/plugins"), "one");
    let first = rig.found("one").identity();
    assert_eq!(first, rig.found("one").identity());
    std::fs::write(folder.join("plugin.yaml"), format!("{}# new\n", manifest("one"))).unwrap();
    let second = rig.found("one").identity();
    executable(&folder.join("awf-plugin-one"), "exit 7");
    let third = rig.found("one").identity();
    std::fs::rename(&folder, folder.with_file_name("two")).unwrap();
    let two = folder.with_file_name("two");
    std::fs::rename(two.join("awf-plugin-one"), two.join("awf-plugin-two")).unwrap();
    let all = [first, second, third, rig.found("one").identity()];
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{all:?}");
}

#[test]
fn the_config_is_laid_in_three_layers() {
    let mut rig = Rig::new();
    let fields = "config: {a: {type: string, default: m}, b: {type: string, default: m}, c: 1}\n";
    let plugins = rig.project.join(".countersign/plugins");
    let folder = place(&plugins, "one", &format!("{}{fields}", manifest("one")));
    executable(&folder.join("awf-plugin-one"), "exit 1");
    let declared = "plugins: {one: {config: {b: d, c: 2, d: d}}}";
    std::fs::write(rig.project.join(".countersign/plugins.yaml"), declared).unwrap();
    rig.configure("one", &json!({"d": "own"}));
    let found = rig.found("one");
    assert_eq!(json!(found.config), json!({"a": "m", "b": "d", "c": 2, "d": "own"}));
    assert!(found.needs_approval(), "a config is no approval");
    rig.configured[0].sha256 = Some(found.executable_sha256.clone());
    assert!(!rig.found("one").needs_approval(), "the digest in the person's own config is one");

    let pin = format!("plugins: {{one: {{sha256: {}}}}}", found.executable_sha256);
    std::fs::write(rig.project.join(".countersign/plugins.yaml"), pin).unwrap();
    rig.configured.clear();
    assert!(rig.found("one").needs_approval(), "a project cannot approve its own plugin");
    std::fs::write(rig.project.join(".countersign/plugins.yaml"), "plugins: [").unwrap();
    let faults = rig.find().faults;
    assert!(faults.len() == 1 && faults[0].contains("plugins.yaml: not valid YAML"), "{faults:?}");
}
