//! Addresses of stores on PostgreSQL.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::sql::{TABLE_RULE, check_table, is_table};
use keyloom::Result;
use keyloom::backend::refused_address;

/// The parts of an address.
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) table: Option<String>,
}

impl Address {
    pub(super) fn parse(address: &str) -> Result<Self> {
        let refused = |why| refused_address(address, why);
        let is_url = ["postgres://", "postgresql://"].iter().any(|url| address.starts_with(url));
        if is_url && !marks_are_clear(address) {
            return Err(refused("escape an @ or ? within a part of it as %40 or %3F"));
        }
        let (address, table) = if is_url { take_table(address) } else { (address.into(), None) };
        if table.as_deref().is_some_and(|table| !is_table(table)) {
            return Err(refused(TABLE_RULE));
        }
        // Certificates are always fully verified, so these values mean the same as `require`.
        let address = ["sslmode=verify-full", "sslmode=verify-ca"]
            .iter()
            .fold(address, |address, mode| address.replace(mode, "sslmode=require"));
        let mut config = Config::from_str(&address)
            .map_err(|_| refused("it is like postgres://user:password@host:5432/database"))?;
        if config.get_hosts().is_empty() {
            return Err(refused("it names no host"));
        }
        let [hosts, addresses, ports] =
            [config.get_hosts().len(), config.get_hostaddrs().len(), config.get_ports().len()];
        if (addresses != 0 && addresses != hosts) || (ports > 1 && ports != hosts) {
            return Err(refused("it has another number of hosts than of ports or of hostaddr"));
        }
        if config.get_user().is_none_or(str::is_empty) {
            return Err(refused("it names no user"));
        }
        if !shows_no_password(&config) {
            return Err(refused(
                "the name of its host, user or database contains one of : = ? & and ; after which there may be a password",
            ));
        }
        if config.get_ssl_mode() == SslMode::Prefer {
            // Opportunistic TLS falls back to plain text, so it does not protect the connection.
            config.ssl_mode(SslMode::Disable);
        }
        if config.get_application_name().is_none() {
            config.application_name("keyloom");
        }
        Ok(Self { config, table })
    }

    /// The checked name of the table: from the address, else from the options, else the default.
    pub(super) fn table(&self, of_options: Option<&str>) -> Result<String> {
        let table = self.table.as_deref().or(of_options).unwrap_or("keyloom");
        check_table(table)?;
        Ok(table.into())
    }
}

impl fmt::Display for Address {
    /// The address of the server, without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        let ports = self.config.get_ports();
        for (position, host) in self.config.get_hosts().iter().enumerate() {
            let separator = if position > 0 { "," } else { "" };
            let port = ports.get(position).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(host) => write!(f, "{separator}{host}:{port}")?,
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{separator}{}:{port}", path.display())?,
            }
        }
        match self.config.get_dbname() {
            Some(database) => write!(f, "/{database}"),
            None => Ok(()),
        }
    }
}

/// Whether each separator of a URL is unambiguous. An unescaped `@` would end the password, and the
/// rest of the password would be parsed as the host. After an unescaped `?`, the rest would be
/// parsed as parameters.
fn marks_are_clear(url: &str) -> bool {
    let once = |mark: char| url.matches(mark).count() <= 1;
    let in_order = url.split_once('?').is_none_or(|(_, parameters)| !parameters.contains('@'));
    once('@') && once('?') && in_order
}

/// Whether the parts of an address that messages of keyloom or the server show are free of a
/// password. If a password is escaped together with its colon, it is parsed as part of the user or
/// the host.
fn shows_no_password(config: &Config) -> bool {
    const MARKS: [char; 5] = [':', '=', '?', '&', ';'];
    let is_name = |name: Option<&str>| name.is_none_or(|name| !name.contains(MARKS));
    let is_host = |host: &Host| match host {
        Host::Tcp(host) => {
            let (ip, _zone) = host.split_once('%').unwrap_or((host, ""));
            ip.parse::<IpAddr>().is_ok() || !host.contains(MARKS) && !host.contains('@')
        }
        #[cfg(unix)]
        Host::Unix(path) => path.to_str().is_some_and(|path| is_name(Some(path))),
    };
    // Some users have names like ada@example.org.
    is_name(config.get_user())
        && is_name(config.get_dbname())
        && !config.get_dbname().is_some_and(|database| database.contains('@'))
        && config.get_hosts().iter().all(is_host)
}

/// The address without keyloom's own parameter `table=…`, and the value of that parameter.
fn take_table(address: &str) -> (String, Option<String>) {
    let Some((place, parameters)) = address.split_once('?') else {
        return (address.into(), None);
    };
    let (ours, others): (Vec<&str>, Vec<&str>) =
        parameters.split('&').partition(|parameter| parameter.starts_with("table="));
    let table = ours.last().and_then(|parameter| parameter.strip_prefix("table="));
    let separator = if others.is_empty() { "" } else { "?" };
    (format!("{place}{separator}{}", others.join("&")), table.map(String::from))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        let address =
            Address::parse("postgres://ada:secret@h1:1,h2:2/geo?table=t&sslmode=require").unwrap();
        assert_eq!(address.to_string(), "postgres://h1:1,h2:2/geo");
        assert_eq!(address.table.as_deref(), Some("t"));
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(address.config.get_password(), Some(&b"secret"[..]));
        let plain = Address::parse("postgres://ada@host/geo?table=t").unwrap();
        assert_eq!(plain.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(plain.to_string(), "postgres://host:5432/geo");
        let pairs = Address::parse("host=h user=ada password=secret dbname=geo").unwrap();
        assert_eq!(pairs.to_string(), "postgres://h:5432/geo");
    }

    #[test]
    fn what_is_wrong_with_an_address_is_said_without_its_password() {
        for address in [
            "postgres://ada:secret@host:port/geo",
            "postgres://ada:secret@host/geo?wrong=1",
            "postgres://ada:sec@secret@host/geo?wrong=1",
            "postgres://ada:sec@secret@host/geo",
            "postgresql://ada:sec?@secret@host/geo",
            "postgres://ada@host/geo?host=other?password=secret",
            "postgres://ada?table=t:secret@host/geo",
            "host=h user=ada password='a?table=secret' wrong=1",
            "postgres://:secret@host/geo",
            "postgres://ada:secret@/geo",
            "postgres://ada:secret/geo?password=secret",
            "host=h password=secret wrong=1",
            "postgres:ada:secret@host",
            "postgres://ada:secret/geo",
            "postgres://ada:sec?secret@host:port/geo",
            "postgres://ada:secret%40host/geo",
            "postgres://ada%3Asecret%40host/geo?user=ada",
            "postgres://ada%3Asecret@host/geo",
            "postgres://ada@host/geo%3Fpassword%3Dsecret",
            "postgres://ada@host/geo%40secret",
            "postgres://ada@%2Frun%3Asecret/geo",
            "postgres://ada@host/geo?table=t%26password%3Dsecret",
            "postgres://ada@host/geo?table=secret!",
            "Postgres://ada:secret/geo",
            "postgre://ada:secret/geo",
            "pg:ada:secret",
            "host=h;user=ada;password=secret user=ada",
            "host=h user=ada:secret",
            "host=h user=ada dbname=geo;password=secret",
            "ada/secret",
            "host=a,b,c port=1,2 user=ada password=secret",
            "host=a hostaddr=127.0.0.1,127.0.0.2 user=ada password=secret",
            "secret",
        ] {
            let error = Address::parse(address).err().map(|error| format!("{error} {error:?}"));
            let error = error.unwrap_or_else(|| panic!("{address} was taken"));
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_address_wins_over_the_options() {
        let address = Address::parse("postgres://ada@host/geo?table=there").unwrap();
        assert_eq!(address.table(None).unwrap(), "there");
        assert_eq!(address.table(Some("here")).unwrap(), "there");

        let without = Address::parse("postgres://ada@host/geo").unwrap();
        assert_eq!(without.table(None).unwrap(), "keyloom");
        assert_eq!(without.table(Some("here")).unwrap(), "here");
        assert!(without.table(Some("no table")).is_err());
    }
}
