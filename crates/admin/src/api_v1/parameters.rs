//! Parameters of a query.

use axum::extract::Request;

use crate::api_error::{ApiError, ProblemBody};
use crate::duplicate_keys::step;

/// Returns the parameters of a query by their names; `None` for those that are absent.
///
/// # Errors
///
/// If a parameter has another name, or is there twice. Each mistake names its parameter.
pub(crate) fn parameters<const COUNT: usize>(
    request: &Request,
    names: [&str; COUNT],
) -> Result<[Option<String>; COUNT], ApiError> {
    let query = request.uri().query().unwrap_or_default();
    let mut values = [const { None }; COUNT];
    let mut problems = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let known = names.iter().position(|known| *known == name);
        let wrong = match known.and_then(|known| values.get_mut(known)) {
            None => format!("found no such parameter; allowed: {}", names.join(", ")),
            Some(Some(_)) => "found twice; allowed: once".to_owned(),
            Some(free) => {
                *free = Some(value.into_owned());
                continue;
            }
        };
        problems.push(ProblemBody::at(step(&name), format!("{name}: {wrong}")));
    }
    if problems.is_empty() {
        Ok(values)
    } else {
        Err(ApiError::NotAllowed { problems })
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn read(query: &str) -> Result<[Option<String>; 2], ApiError> {
        let uri = format!("/history{query}");
        let request = Request::builder().uri(uri).body(Body::empty()).unwrap();
        parameters(&request, ["from", "to"])
    }

    #[test]
    fn parameters_are_found_by_name() {
        assert_eq!(read("").unwrap(), [None, None]);
        let expected = [Some("a b".to_owned()), Some("1+1".to_owned())];
        assert_eq!(read("?to=1%2B1&from=a+b").unwrap(), expected);
    }

    #[test]
    fn every_other_parameter_is_named() {
        let expected = |pointers: &[(&str, &str)]| {
            let problems = pointers.iter();
            let problems = problems
                .map(|(name, text)| ProblemBody::at(format!("/{name}"), format!("{name}: {text}")));
            Err(ApiError::NotAllowed {
                problems: problems.collect(),
            })
        };
        let unknown = "found no such parameter; allowed: from, to";
        assert_eq!(
            read("?until=1&to=1&step&to=2"),
            expected(&[
                ("until", unknown),
                ("step", unknown),
                ("to", "found twice; allowed: once"),
            ])
        );
    }
}
