//! The `anteroom` program. All of it is in the library, which is compiled once for the program and
//! its tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    anteroom::command_line::main()
}
