//! The binary `fanfare`. All code is in the library, so that the tests can run the same program.

fn main() -> std::process::ExitCode {
    fanfare_server::main()
}
