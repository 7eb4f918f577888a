//! `anteroom reload`: has running gateways read their configuration files again.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use futures_util::future::join_all;
use http::Method;
use serde_json::{Value, json};

use crate::client::commands::{
    EXIT_FAILED, EXIT_NOT_ALLOWED, OperatorReply, OperatorRequest, execute,
};
use crate::client::options::{ADMIN, AdminAddress, Connection, address};
use crate::client::text as common;

/// Flags of `anteroom reload`.
#[derive(Args, Clone, Debug)]
pub struct ReloadOptions {
    /// Admin address of a gateway; several times for several gateways, each with its own file
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = ADMIN,
        value_parser = address
    )]
    admin: Vec<AdminAddress>,
    #[command(flatten)]
    connection: Connection,
}

/// Has each gateway read its file again, and prints a line for each. The exit code is 2 if a file
/// has mistakes, and 1 if a gateway did not respond.
///
/// # Errors
///
/// If nothing can be printed.
pub async fn run(
    options: ReloadOptions,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let request = OperatorRequest {
        method: Method::POST,
        path: "reload".to_owned(),
        body: Some(json!({})),
    };
    let requests = options.admin.iter().map(async |admin| {
        let reply = execute(admin, &options.connection, request.clone()).await;
        reply.with_context(|| format!("reload at {admin}"))
    });
    let mut codes = Vec::new();
    for (admin, reply) in options.admin.iter().zip(join_all(requests).await) {
        let (code, body) = match &reply {
            Ok(OperatorReply::Done(body) | OperatorReply::ThisNodeOnly(body)) => (0, body.clone()),
            Ok(OperatorReply::NotAllowed(body)) => (EXIT_NOT_ALLOWED, body.clone()),
            Err(error) => (EXIT_FAILED, json!({ "message": format!("{error:#}") })),
        };
        codes.push(code);
        if options.connection.json {
            let line: Value =
                json!({ "node": admin.to_string(), "exitCode": code, "response": body });
            writeln!(out, "{line}")?;
            continue;
        }
        match reply {
            Ok(OperatorReply::NotAllowed(body)) => {
                let problems = common::problems(&body);
                writeln!(
                    err,
                    "{admin}: the file before stays in force\n{}",
                    problems.trim_end()
                )?;
            }
            Ok(_) => writeln!(out, "{admin}: the file is in force")?,
            Err(error) => writeln!(err, "error: {error:#}")?,
        }
    }
    let worst = [EXIT_FAILED, EXIT_NOT_ALLOWED];
    let worst = worst.into_iter().find(|code| codes.contains(code));
    Ok(worst.map_or(ExitCode::SUCCESS, ExitCode::from))
}
