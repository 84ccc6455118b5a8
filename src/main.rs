//! The thin binary: argv to exit code.

fn main() -> std::process::ExitCode {
    tollgate::cli::run()
}
