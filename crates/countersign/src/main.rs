//! The program. All of it is in the library, which is compiled while the crates that it depends on
//! still are.

use std::process::ExitCode;

/// The allocator of musl, which the packages are linked with, makes threads wait for each other.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    countersign::main()
}
