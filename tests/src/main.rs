//! `fanfare`, as a program that the integration tests start, stop and kill.

fn main() -> std::process::ExitCode {
    server::main()
}
