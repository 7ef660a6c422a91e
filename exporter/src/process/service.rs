//! The service a process belongs to: what its own OpenTelemetry settings say, else its script.
//!
//! Of the target's environment only the two variables named here are looked at; nothing else of it
//! is kept.

/// Settings of the service in an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceSettings {
    /// `service.name`, where one is set.
    pub name: Option<String>,
    /// The other resource attributes, keys distinct, in the order of their last mention.
    pub attributes: Vec<(String, String)>,
}

/// Reads `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` from the bytes of `/proc/PID/environ`;
/// the former wins.
#[must_use]
pub fn from_environ(environ: &[u8]) -> ServiceSettings {
    let variable = |name: &str| {
        environ.split(|&byte| byte == 0).find_map(|entry| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            std::str::from_utf8(value).ok().filter(|value| !value.trim().is_empty())
        })
    };
    let mut attributes = variable("OTEL_RESOURCE_ATTRIBUTES").and_then(parse_attributes).unwrap_or_default();
    let listed =
        attributes.iter().position(|(key, _)| key == "service.name").map(|at| attributes.remove(at).1);
    let name = variable("OTEL_SERVICE_NAME").map(|name| name.trim().to_owned());
    ServiceSettings { name: name.or(listed.filter(|name| !name.is_empty())), attributes }
}

/// `key=value,key=value`, percent-encoded. One faulty item voids the whole list, as the OpenTelemetry
/// specification of resources asks; of several with one key the last holds.
fn parse_attributes(text: &str) -> Option<Vec<(String, String)>> {
    let mut attributes: Vec<(String, String)> = Vec::new();
    for item in text.split(',') {
        let (key, value) = item.split_once('=')?;
        let (key, value) = (percent_decode(key.trim())?, percent_decode(value.trim())?);
        if key.is_empty() {
            return None;
        }
        attributes.retain(|(known, _)| *known != key);
        attributes.push((key, value));
    }
    Some(attributes)
}

/// `None` when an escape is cut or no hexadecimal, or the result is not UTF-8.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            u8::try_from(high * 16 + low).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(decoded).ok()
}

/// The name of the script or module that a Python command line (the bytes of `/proc/PID/cmdline`)
/// runs: `x` for `python x.py`, `pkg.mod` for `python -m pkg.mod`; `None` for `-c`, standard input
/// and an interactive session.
#[must_use]
pub fn script_name(cmdline: &[u8]) -> Option<String> {
    let text = |argument: &[u8]| String::from_utf8_lossy(argument).into_owned();
    let mut arguments = cmdline.strip_suffix(b"\0").unwrap_or(cmdline).split(|&byte| byte == 0).skip(1);
    while let Some(argument) = arguments.next() {
        let Some(options) = argument.strip_prefix(b"-") else {
            let name = argument.rsplit(|&byte| byte == b'/').next().unwrap_or(argument);
            let name = name.strip_suffix(b".py").unwrap_or(name);
            return (!name.is_empty()).then(|| text(name));
        };
        if options.is_empty() {
            return None;
        }
        if options.starts_with(b"-") {
            if options == b"-check-hash-based-pycs" {
                arguments.next();
            }
            continue;
        }
        // Several one-letter options may share a dash; these four take the rest or the next argument.
        for (at, option) in options.iter().enumerate() {
            let rest = options.get(at + 1..).unwrap_or_default();
            match option {
                b'c' => return None,
                b'm' if rest.is_empty() => return arguments.next().map(text),
                b'm' => return Some(text(rest)),
                b'W' | b'X' => {
                    if rest.is_empty() {
                        arguments.next();
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_variable_wins() {
        let environ = b"HOME=/x\0OTEL_RESOURCE_ATTRIBUTES=a=1,service.name=listed, a = %C3%A9 \0OTEL_SERVICE_NAME=shop\0";
        let found = from_environ(environ);
        assert_eq!(found.name.as_deref(), Some("shop"));
        assert_eq!(found.attributes, [("a".to_owned(), "é".to_owned())]);
        let listed = from_environ(b"OTEL_SERVICE_NAME= \0OTEL_RESOURCE_ATTRIBUTES=service.name=x,b=\0");
        assert_eq!(listed.name.as_deref(), Some("x"));
        assert_eq!(listed.attributes, [("b".to_owned(), String::new())]);
    }

    #[test]
    fn a_faulty_list_is_dropped_whole() {
        for list in ["a=1,b", "a=1,=2", "a=%4", "a=%zz,b=1", "a=%ff", "a=1,,b=2"] {
            let environ = format!("OTEL_RESOURCE_ATTRIBUTES={list}");
            assert_eq!(from_environ(environ.as_bytes()), ServiceSettings::default(), "{list}");
        }
        assert_eq!(from_environ(b"XOTEL_SERVICE_NAME=a\0OTEL_SERVICE_NAMES=b\0"), ServiceSettings::default());
    }

    #[test]
    fn scripts() {
        let name = |line: &str| script_name(format!("{}\0", line.replace(' ', "\0")).as_bytes());
        assert_eq!(name("python3 app.py x").as_deref(), Some("app"));
        assert_eq!(name("python3 -u -X dev -Wignore /srv/a.b.py").as_deref(), Some("a.b"));
        assert_eq!(name("python3 -m pkg.mod --x").as_deref(), Some("pkg.mod"));
        assert_eq!(name("python3 -Impkg").as_deref(), Some("pkg"));
        assert_eq!(name("python3 --check-hash-based-pycs always run").as_deref(), Some("run"));
        for none in ["python3", "python3 -c x=1", "python3 -", "python3 -m", "python3 -W"] {
            assert_eq!(name(none), None, "{none}");
        }
        assert_eq!(script_name(b""), None);
    }
}
