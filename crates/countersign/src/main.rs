//! The program is the library, which can be compiled while those that it needs still are.

use std::process::ExitCode;

/// The allocator of musl, which the packages are linked with, makes threads wait for each other.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    countersign::main()
}
