//! `${env:NAME}` and `${env:NAME:-default}` in values, as the OpenTelemetry Collector writes them.
//!
//! The default also stands in for an empty variable, as in a shell. `$$` is a plain `$`.

/// Where variables come from: the process environment, or a test's table.
pub(super) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Puts the values of variables in place.
///
/// # Errors
/// Names the variable that is not defined, or says which form is allowed. Never tells a variable's value.
pub(super) fn expand(text: &str, variables: Variables<'_>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(next) = after.strip_prefix('$') {
            out.push('$');
            rest = next;
        } else if let Some(inner) = after.strip_prefix('{') {
            let Some(end) = inner.find('}') else {
                return Err("`${` without `}`; write `$$` for a plain `$`".to_owned());
            };
            out.push_str(&resolve(&inner[..end], variables)?);
            rest = &inner[end + 1..];
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// The value of what stands between the braces.
fn resolve(inner: &str, variables: Variables<'_>) -> Result<String, String> {
    let Some(reference) = inner.strip_prefix("env:") else {
        // What stands there may be part of a secret, so it is not repeated.
        return Err(
            "`${` begins no reference; allowed: ${env:NAME}, ${env:NAME:-default}, `$$` for a plain `$`"
                .to_owned(),
        );
    };
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.chars().all(word) {
        return Err("what follows `${env:` is not the name of an environment variable".to_owned());
    }
    match (variables(name), default) {
        (Some(value), Some(default)) if value.is_empty() => Ok(default.to_owned()),
        (Some(value), _) => Ok(value),
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(format!(
            "environment variable {name} is not defined; define it or write ${{env:{name}:-default}}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("collector".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn references_become_values() {
        let cases = [
            ("plain", "plain"),
            ("http://${env:HOST}:4317", "http://collector:4317"),
            ("${env:NO:-a}${env:HOST:-b}", "acollector"),
            ("${env:EMPTY:-c}|${env:EMPTY}|${env:NO:-}", "c||"),
            ("$$ $x $${env:NO}", "$ $x ${env:NO}"),
        ];
        for (text, expected) in cases {
            assert_eq!(expand(text, &table).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_is_named() {
        assert!(expand("${env:NO}", &table).unwrap_err().contains("NO is not defined"));
        assert!(expand("${HOST}", &table).unwrap_err().contains("${env:NAME}"));
        assert!(expand("${env:HOST", &table).unwrap_err().contains("without"));
        assert!(expand("${env:1 x}", &table).unwrap_err().contains("is not the name"));
    }
}
