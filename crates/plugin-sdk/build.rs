//! Generates Rust from the protocol. The compiler is written in Rust as well: nothing has to be
//! installed.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["plugin.proto", "go_plugin.proto", "health.proto"];
    for file in files {
        println!("cargo::rerun-if-changed=proto/{file}");
    }
    let described = protox::compile(files, ["proto"])?;
    tonic_prost_build::configure()
        // A fixed order, so that the same response is the same text.
        .btree_map(".")
        .build_transport(false)
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
        .compile_fds(described)?;
    Ok(())
}
