//! The place of a server's files: whether they are those of this machine, and the folder from
//! which it resolves relative paths. All of it follows from the config and from what the client
//! answered; where that is not certain, there is no folder.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use access::secrets::SecretValues;
use domain::config::ConfigTemplate;
use mcp::message::Raw;
use serde::Deserialize;
use text::percent;

use crate::command::ChildCommand;
use crate::spec::ServerEndpoint;

/// The name of the reference file server, which resolves relative paths from its first allowed
/// folder.
const FILE_SERVER: &str = "secure-filesystem-server";
/// Its program.
const FILE_SERVER_PROGRAM: &str = "server-filesystem";

/// Programs that run a server elsewhere: in a container, or on another machine.
const ELSEWHERE: [&str; 9] =
    ["docker", "finch", "kubectl", "lxc", "nerdctl", "oc", "podman", "ssh", "wsl"];

/// Programs that pass messages on to a server elsewhere.
const BRIDGES: [&str; 3] = ["mcp-proxy", "mcp-remote", "supergateway"];

/// The variable with the folder that `~` means.
const HOME: &str = "HOME";

/// The place of a server's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerPlace {
    /// The server runs on this machine.
    pub(crate) is_local: bool,
    /// The folder in which it was started.
    folder: Option<Arc<str>>,
    /// The first folder among its arguments, if it is the reference file server.
    allowed: Option<Arc<str>>,
    /// The folder that `~` means to it.
    pub(crate) home: Option<Arc<str>>,
    /// The folders that the client named when the server asked.
    roots: ClientRoots,
}

/// A client's answer to a server's request for roots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ClientRoots {
    /// The server has not asked, or there were none.
    #[default]
    None,
    One(Arc<str>),
    /// There are several, or one elsewhere: the folder is not certain.
    Unclear,
}

impl ServerPlace {
    pub(crate) fn of(endpoint: &ServerEndpoint) -> ServerPlace {
        match endpoint {
            ServerEndpoint::Stdio(command) => ServerPlace::of_child(command),
            ServerEndpoint::Plugin(plugin) => ServerPlace::in_folder(plugin.cwd.as_deref()),
            // A server on loopback may be the end of a tunnel or run in a container.
            ServerEndpoint::Remote(_)
            | ServerEndpoint::WithoutSecrets(_)
            | ServerEndpoint::Embedded(_) => ServerPlace::default(),
        }
    }

    fn of_child(command: &ChildCommand) -> ServerPlace {
        // An argument with a secret names no folder.
        let secrets = SecretValues::default();
        let value = |template: &ConfigTemplate| secrets.expand(template).unwrap_or_default();
        let args: Vec<String> = command.args.iter().map(value).collect();
        let place = ServerPlace::of_command(&command.command, &args, command.cwd.as_deref());
        match command.env.iter().rfind(|(name, _)| name == HOME) {
            Some((_, home)) if place.is_local => {
                let home = Some(value(home)).filter(|home| home.starts_with('/'));
                ServerPlace { home: home.map(Into::into), ..place }
            }
            _ => place,
        }
    }

    /// Returns the place of a command that this process starts in a folder, or in its own.
    pub fn of_command(program: &str, args: &[String], cwd: Option<&Path>) -> ServerPlace {
        let is_bridge = |word: &str| BRIDGES.contains(&package(word));
        let is_elsewhere = ELSEWHERE.contains(&file_name(program))
            || is_bridge(program)
            || args.iter().any(|arg| is_bridge(arg));
        if is_elsewhere {
            return ServerPlace::default();
        }
        let place = ServerPlace::in_folder(cwd);
        let allowed = place.folder.as_deref().and_then(|folder| allowed(program, args, folder));
        ServerPlace { allowed, ..place }
    }

    fn in_folder(cwd: Option<&Path>) -> ServerPlace {
        let folder = std::path::absolute(cwd.unwrap_or(Path::new(".")));
        let folder = folder.ok().and_then(|folder| folder.to_str().map(Into::into));
        ServerPlace { is_local: true, folder, home: home(), ..ServerPlace::default() }
    }

    /// Returns the place of the gate's own tools, which work in this folder.
    pub(crate) fn of_builtin(root: &Arc<str>) -> ServerPlace {
        let folder = Some(root.clone());
        ServerPlace { is_local: true, folder, home: home(), ..ServerPlace::default() }
    }

    /// Returns the same place for a connection on which a client named its roots.
    #[must_use]
    pub(crate) fn with_roots(self, roots: ClientRoots) -> ServerPlace {
        ServerPlace { roots, ..self }
    }

    /// Returns the folder from which a server that calls itself by this name resolves relative
    /// paths. Its name decides nothing but that.
    pub(crate) fn root(&self, info: Option<&str>) -> Option<&str> {
        if !self.is_local {
            return None;
        }
        match &self.roots {
            ClientRoots::One(root) => Some(root),
            ClientRoots::Unclear => None,
            ClientRoots::None if info == Some(FILE_SERVER) => self.allowed.as_deref(),
            ClientRoots::None => self.folder.as_deref(),
        }
    }
}

impl ClientRoots {
    /// Reads the answer to `roots/list`. Only folders of this machine count.
    pub(crate) fn of_answer(answer: &Raw) -> ClientRoots {
        #[derive(Deserialize)]
        struct Answer {
            roots: Vec<Root>,
        }
        #[derive(Deserialize)]
        struct Root {
            uri: String,
        }
        let Ok(Answer { roots }) = serde_json::from_str::<Answer>(answer.get()) else {
            return ClientRoots::None;
        };
        match &roots[..] {
            [] => ClientRoots::None,
            [Root { uri }] => match folder_of(uri) {
                Some(folder) => ClientRoots::One(folder.into()),
                None => ClientRoots::Unclear,
            },
            _ => ClientRoots::Unclear,
        }
    }
}

/// Returns the folder that `~` means to programs that this one starts.
pub fn home() -> Option<Arc<str>> {
    static OWN: LazyLock<Option<Arc<str>>> = LazyLock::new(|| {
        let home = std::env::var(HOME).ok().filter(|home| home.starts_with('/'));
        home.map(Into::into)
    });
    OWN.clone()
}

/// Returns the path in a `file` address.
fn folder_of(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = percent::decode_leniently(rest).filter(|_| rest.starts_with('/'));
    path.filter(|path| !path.contains('\0'))
}

/// Returns the first folder that the reference file server may use, which stands behind the name of
/// the server and its options.
fn allowed(program: &str, args: &[String], folder: &str) -> Option<Arc<str>> {
    let is_server = |word: &str| package(word).ends_with(FILE_SERVER_PROGRAM);
    let after = match args.iter().position(|arg| is_server(arg)) {
        Some(at) => at + 1,
        None if is_server(program) => 0,
        None => return None,
    };
    let path = args[after..].iter().find(|arg| !arg.starts_with('-'))?;
    let path = match path.strip_prefix("~/") {
        Some(rest) => PathBuf::from(&*home()?).join(rest),
        None => PathBuf::from(folder).join(path),
    };
    path.to_str().map(Into::into)
}

fn file_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Returns the name of a program or a package, without its folder, scope, version and ending.
fn package(word: &str) -> &str {
    let name = file_name(word);
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    name.strip_suffix(".js").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use mcp::message::raw;

    use super::*;

    fn place(words: &str, cwd: Option<&str>) -> ServerPlace {
        let mut words = words.split(' ');
        let program = words.next().unwrap();
        let args: Vec<String> = words.map(str::to_owned).collect();
        ServerPlace::of_command(program, &args, cwd.map(Path::new))
    }

    #[test]
    fn relative_paths_start_where_the_server_resolves_them() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        for (words, cwd, info, root) in [
            ("node x.js", Some("/srv"), None, Some("/srv")),
            ("node x.js", None, None, Some(here)),
            ("node x.js", Some("/no/such/folder"), None, Some("/no/such/folder")),
            ("mcp-server-git --repository /r", Some("/srv"), Some("git"), Some("/srv")),
            ("mcp-server-filesystem /data /more", Some("/srv"), Some(FILE_SERVER), Some("/data")),
            ("/bin/mcp-server-filesystem data", Some("/srv"), Some(FILE_SERVER), Some("/srv/data")),
            (
                "npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /data",
                None,
                Some(FILE_SERVER),
                Some("/data"),
            ),
            // Another server under that name, or no folder: nothing is certain.
            ("mcp-server-filesystem /data", Some("/srv"), Some("other"), Some("/srv")),
            ("mcp-server-filesystem", Some("/srv"), Some(FILE_SERVER), None),
            ("node x.js /data", Some("/srv"), Some(FILE_SERVER), None),
        ] {
            let place = place(words, cwd);
            assert!(place.is_local, "{words}");
            assert_eq!(place.root(info), root, "{words}");
        }
    }

    #[test]
    fn what_runs_elsewhere_has_no_files_here() {
        for words in [
            "docker run -i --rm mcp/filesystem /projects",
            "/usr/bin/podman run x",
            "ssh host server",
            "npx -y mcp-remote https://example.com/mcp",
            "npx mcp-remote@latest https://example.com/mcp",
            "mcp-proxy http://127.0.0.1:1/sse",
        ] {
            let place = place(words, Some("/srv"));
            assert_eq!((place.is_local, place.root(None)), (false, None), "{words}");
        }
        let lost = ServerEndpoint::WithoutSecrets("http");
        assert_eq!(ServerPlace::of(&lost), ServerPlace::default());
    }

    #[test]
    fn a_single_root_of_the_client_is_the_folder() {
        let read = |text: &str| ClientRoots::of_answer(&raw(text.to_owned()));
        let one = |path: &str| ClientRoots::One(path.into());
        for (answer, roots) in [
            (r#"{"roots":[{"uri":"file:///w/a%20b","name":"x"}]}"#, one("/w/a b")),
            (r#"{"roots":[{"uri":"file://localhost/w"}]}"#, one("/w")),
            (r#"{"roots":[{"uri":"file:///w%2"}]}"#, one("/w%2")),
            (r#"{"roots":[]}"#, ClientRoots::None),
            (r#"{"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]}"#, ClientRoots::Unclear),
            (r#"{"roots":[{"uri":"https://example.com/"}]}"#, ClientRoots::Unclear),
            (r#"{"roots":[{"uri":"file://other/w"}]}"#, ClientRoots::Unclear),
            (r#"{"roots":[{"uri":"file:///a%00b"}]}"#, ClientRoots::Unclear),
            (r#"{"roots":7}"#, ClientRoots::None),
            ("null", ClientRoots::None),
        ] {
            assert_eq!(read(answer), roots, "{answer}");
        }
        let place = place("mcp-server-filesystem /data", Some("/srv"));
        let rooted = place.clone().with_roots(one("/mine"));
        assert_eq!(rooted.root(Some(FILE_SERVER)), Some("/mine"));
        assert_eq!(place.with_roots(ClientRoots::Unclear).root(None), None);
        let remote = ServerPlace::default().with_roots(one("/mine"));
        assert_eq!(remote.root(None), None, "the folder is not the server's");
    }
}
