//! The `anteroom` program. All its code is in the library, which is compiled once for the program
//! and its tests.

use std::process::ExitCode;

fn main() -> ExitCode {
    anteroom::command_line::main()
}
