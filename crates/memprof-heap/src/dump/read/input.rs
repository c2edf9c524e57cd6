//! The input without its compression, and which format it has.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use super::super::binary::MAGIC;
use super::super::format::Format;
use super::invalid;

/// Bytes read at once.
const CAPACITY: usize = 256 * 1024;

/// Lines that are looked at for the format: a line may be broken.
const LOOKED_AT: usize = 20;

/// A dump, without compression.
pub(super) struct Input {
    reader: Box<dyn BufRead + Send>,
    /// What was read of it to find out the format.
    head: Vec<u8>,
    /// Bytes of `head` that were taken.
    taken: usize,
    compressed: bool,
    /// The compressed data ended early, or are broken from here on.
    cut: bool,
}

type Source = BufReader<io::Chain<io::Cursor<Vec<u8>>, Box<dyn Read + Send>>>;

impl Input {
    pub fn new(mut source: Box<dyn Read + Send>) -> io::Result<Input> {
        let mut start = Vec::new();
        (&mut source).take(4).read_to_end(&mut start)?;
        let gzip = start.starts_with(&[0x1f, 0x8b]);
        let zstd = start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let source: Source =
            BufReader::with_capacity(CAPACITY, io::Cursor::new(start).chain(source));
        let reader: Box<dyn BufRead + Send> = if gzip {
            Box::new(BufReader::with_capacity(
                CAPACITY,
                MultiGzDecoder::new(source),
            ))
        } else if zstd {
            let decoder = zstd::Decoder::with_buffer(source)?;
            Box::new(BufReader::with_capacity(CAPACITY, decoder))
        } else {
            Box::new(source)
        };
        Ok(Input {
            reader,
            head: Vec::new(),
            taken: 0,
            compressed: gzip || zstd,
            cut: false,
        })
    }

    /// True if there would have been more.
    pub fn cut(&self) -> bool {
        self.cut
    }

    /// Appends bytes up to `limit`, or, if there is a limit of 0, up to the end of the line. Returns how many.
    fn more(&mut self, out: &mut Vec<u8>, limit: u64) -> io::Result<usize> {
        let before = out.len();
        while !self.cut {
            let have = (out.len() - before) as u64;
            let result = match limit {
                0 => self.reader.read_until(b'\n', out),
                _ => (&mut self.reader).take(limit - have).read_to_end(out),
            };
            match result {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What was unpacked before is good.
                Err(error) if self.compressed && error.raw_os_error().is_none() => self.cut = true,
                Err(error) => return Err(error),
            }
        }
        Ok(out.len() - before)
    }

    /// Appends a line with its end, or what there is before the end of the input. 0 at the end.
    pub fn line(&mut self, out: &mut Vec<u8>) -> io::Result<usize> {
        let head = &self.head[self.taken..];
        if head.is_empty() {
            return self.more(out, 0);
        }
        match head.iter().position(|&byte| byte == b'\n') {
            Some(end) => {
                out.extend_from_slice(&head[..=end]);
                self.taken += end + 1;
                Ok(end + 1)
            }
            None => {
                let begun = head.len();
                out.extend_from_slice(head);
                self.taken += begun;
                Ok(begun + self.more(out, 0)?)
            }
        }
    }

    /// Appends at most `count` bytes, less only at the end.
    pub fn bytes(&mut self, out: &mut Vec<u8>, count: u64) -> io::Result<u64> {
        let head = &self.head[self.taken..];
        let begun = head.len().min(usize::try_from(count).unwrap_or(usize::MAX));
        out.extend_from_slice(&head[..begun]);
        self.taken += begun;
        let rest = count - begun as u64;
        let more = if rest == 0 { 0 } else { self.more(out, rest)? };
        Ok((begun + more) as u64)
    }

    /// Finds out the format, from the beginning.
    ///
    /// # Errors
    /// If it is none; says why.
    pub fn format(&mut self) -> io::Result<Format> {
        let mut head = Vec::new();
        self.more(&mut head, MAGIC.len() as u64)?;
        let format = if head == MAGIC {
            Ok(Format::Binary)
        } else if head.is_empty() {
            Err(invalid(if self.cut {
                "the compressed data are broken at their beginning"
            } else {
                "the file is empty"
            }))
        } else {
            self.text_format(&mut head)
        };
        self.head = head;
        format
    }

    fn text_format(&mut self, head: &mut Vec<u8>) -> io::Result<Format> {
        let mut start = 0;
        let mut problem = None;
        for number in 1..=LOOKED_AT {
            if !head[start..].contains(&b'\n') {
                self.more(head, 0)?;
            }
            let rest = &head[start..];
            if rest.is_empty() {
                break;
            }
            let end = rest.iter().position(|&byte| byte == b'\n');
            let line = &rest[..end.unwrap_or(rest.len())];
            start += end.map_or(rest.len(), |end| end + 1);
            match format_of(line.trim_ascii()) {
                _ if line.trim_ascii().is_empty() => {}
                Ok(format) => return Ok(format),
                Err(text) => problem = problem.or(Some(format!("line {number}: {text}"))),
            }
        }
        let problem = problem.unwrap_or_else(|| "it has only blanks".to_owned());
        Err(invalid(format!("this is no heap dump; {problem}")))
    }
}

/// The format that has such a line.
fn format_of(line: &[u8]) -> Result<Format, String> {
    if line.starts_with(b"[{\"id\":") {
        return Err("this is a dump of heap_dump, which cannot be read".to_owned());
    }
    let has = |key: &[u8]| line.starts_with(b"{") && line.windows(key.len()).any(|at| at == key);
    if line.starts_with(b"{\"_id\"") {
        return Ok(Format::Memprof);
    }
    let objspace = [
        &b"{\"address\":"[..],
        b"{\"type\":\"ROOT\"",
        b"{\"type\": \"ROOT\"",
    ];
    if objspace.iter().any(|start| line.starts_with(start)) {
        return Ok(Format::Objspace);
    }
    if has(b"\"address\"") && has(b"\"type\"") {
        return Ok(Format::Objspace);
    }
    let line = String::from_utf8_lossy(&line[..line.len().min(40)]);
    Err(format!("neither memprof's nor objspace's: {line:?}"))
}
