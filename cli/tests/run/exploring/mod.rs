//! `explore`: the page of a running binary, over plain HTTP.

mod safety;
mod views;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;

use serde_json::Value;

use crate::support::piped;

/// A running explorer, which ends with the value.
pub struct Explorer {
    child: Child,
    /// The IP address and the port.
    pub host: String,
    /// The path of the page, with a slash at its end.
    path: String,
}

impl Drop for Explorer {
    fn drop(&mut self) {
        // A test may have ended it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Explorer {
    pub fn start(address: &str, more: &[&str]) -> Self {
        let mut child = piped(&[&["explore", address, "--json"], more].concat());
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url: Value = serde_json::from_str(&line).unwrap();
        let url = url["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let (host, path) = url.split_once('/').unwrap();
        Self { child, host: host.to_owned(), path: format!("/{path}") }
    }

    pub fn send(&self, method: &str, path: &str, host: &str) -> Answer {
        let port = self.host.rsplit_once(':').unwrap().1;
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", &format!("{}{path}", self.path), &self.host)
    }

    /// The data of a view.
    pub fn view(&self, view: &str) -> Value {
        let Answer { status, body, .. } = self.get(&format!("api/{view}"));
        assert_eq!(status, 200, "{view}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// All keys that a view lists, page by page.
    pub fn keys(&self, select: &str) -> Vec<String> {
        let (mut keys, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.view(&format!("browse?select={}&after={after}", encoded(select)));
            keys.extend(page["entries"].as_array().unwrap().iter().map(|row| text(&row["key"])));
            match page["next"].as_str() {
                Some(next) => after = next.to_owned(),
                None => return keys,
            }
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
