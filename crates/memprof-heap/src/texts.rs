//! Contents of strings, symbols and regexps, in a file, as they may exceed memory.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufWriter, Seek, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::NONE;
use memprof_dump::read::invalid;
use memprof_dump::record::{Content, Text};

/// Bytes stored of each text.
pub const KEPT: usize = 1024;

/// The alignment of texts, so that 32 bits reach 32 GiB.
const UNIT: u64 = 8;

/// Bytes read at once when texts are read in order. Going through objects by address jumps between heap pages, each of which has
/// its texts together, so larger reads would be wasted.
const WINDOW: usize = 1 << 15;

const FULL: u64 = 0;
const TRUNCATED: u64 = 1;
const MARK: u64 = 2;

/// A text as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Length of the whole text in bytes.
    pub length: u64,
    /// The known contents.
    pub known: Known,
}

/// The known contents of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// All bytes.
    All(Vec<u8>),
    /// The first bytes, and a hash of all bytes.
    Beginning(Vec<u8>, u64),
    /// The first bytes; the dump has no more.
    Truncated(Vec<u8>),
    /// Equal for equal texts of the dump, without revealing the contents.
    Mark(u64),
}

impl Stored {
    /// Equal for equal texts, as far as can be known; `None` if it cannot.
    pub fn identity(&self) -> Option<(u64, u64)> {
        let hash = match &self.known {
            Known::All(bytes) => hash(bytes),
            Known::Beginning(_, hash) | Known::Mark(hash) => *hash,
            Known::Truncated(_) => return None,
        };
        Some((hash, self.length))
    }

    /// The known bytes at the beginning.
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.known {
            Known::All(bytes) | Known::Beginning(bytes, _) | Known::Truncated(bytes) => Some(bytes),
            Known::Mark(_) => None,
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}

/// Writes texts one after another.
pub(super) struct TextWriter {
    out: BufWriter<File>,
    begin: u64,
    position: u64,
}

impl TextWriter {
    /// Writes to a file from its current position.
    pub fn new(mut file: File) -> io::Result<TextWriter> {
        let begin = file.stream_position()?;
        Ok(TextWriter { out: BufWriter::with_capacity(WINDOW, file), begin, position: 0 })
    }

    /// Writes a text and returns its place; [`NONE`] if nothing is known of it.
    pub fn push(&mut self, text: &Text<'_>) -> io::Result<u32> {
        let known = |bytes: &[u8]| bytes.len() as u64;
        let (kind, bytes, length) = match text.content {
            Content::Full(bytes) => (FULL, bytes, bytes.len() as u64),
            Content::Truncated(bytes) => {
                (TRUNCATED, bytes, text.length.unwrap_or_else(|| known(bytes)))
            }
            Content::Mark(mark) => return self.mark(mark, text.length.unwrap_or(0)),
            Content::Absent => return Ok(NONE),
        };
        let kept = &bytes[..bytes.len().min(KEPT)];
        let place = self.place()?;
        self.head(kind, kept.len(), length)?;
        if kind == FULL && bytes.len() > KEPT {
            self.write(&hash(bytes).to_le_bytes())?;
        }
        self.write(kept)?;
        self.align()?;
        Ok(place)
    }

    fn mark(&mut self, mark: u64, length: u64) -> io::Result<u32> {
        let place = self.place()?;
        self.head(MARK, 0, length)?;
        self.write(&mark.to_le_bytes())?;
        Ok(place)
    }

    fn head(&mut self, kind: u64, kept: usize, length: u64) -> io::Result<()> {
        let head = length.min(u64::MAX >> 16) << 16 | (kept as u64) << 2 | kind;
        self.write(&head.to_le_bytes())
    }

    fn place(&self) -> io::Result<u32> {
        match u32::try_from(self.position / UNIT) {
            Ok(place) if place != NONE => Ok(place),
            _ => Err(invalid("more than 32 GiB of texts")),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.position += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn align(&mut self) -> io::Result<()> {
        let missing = (UNIT - self.position % UNIT) % UNIT;
        self.write(&[0; UNIT as usize][..missing as usize])
    }

    /// Finishes the file, which is left at the end of the texts.
    pub fn finish(self) -> io::Result<(File, Texts)> {
        let (begin, length) = (self.begin, self.position);
        let file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        let texts = Texts { file: Some(Arc::new(file.try_clone()?)), begin, length };
        Ok((file, texts))
    }
}

/// The texts of a heap.
#[derive(Clone, Default)]
pub struct Texts {
    file: Option<Arc<File>>,
    pub(super) begin: u64,
    pub(super) length: u64,
}

impl Texts {
    pub(super) fn new(file: Arc<File>, begin: u64, length: u64) -> Texts {
        Texts { file: Some(file), begin, length }
    }

    /// Reads texts; fast in ascending order.
    pub fn reader(&self) -> TextReader<'_> {
        TextReader { texts: self, window: Vec::new(), start: 0 }
    }

    /// One text.
    ///
    /// # Errors
    /// If it cannot be read, or this place has no text.
    pub fn get(&self, place: u32) -> io::Result<Stored> {
        let mut reader = self.reader();
        reader.read(u64::from(place) * UNIT, 16 + KEPT)?;
        reader.get(place)
    }
}

/// A part of the texts, in memory.
pub struct TextReader<'t> {
    texts: &'t Texts,
    window: Vec<u8>,
    /// The position of the window in the texts.
    start: u64,
}

impl TextReader<'_> {
    /// The text at a place.
    ///
    /// # Errors
    /// If it cannot be read, or this place has no text.
    pub fn get(&mut self, place: u32) -> io::Result<Stored> {
        let at = u64::from(place) * UNIT;
        let head = u64::from_le_bytes(self.array(at)?);
        let (kind, kept, length) = (head & 3, (head >> 2 & 0x3fff) as usize, head >> 16);
        let cut = kind == FULL && length > kept as u64;
        let known = match kind {
            MARK => Known::Mark(u64::from_le_bytes(self.array(at + 8)?)),
            TRUNCATED => Known::Truncated(self.bytes(at + 8, kept)?.to_vec()),
            _ if cut => {
                let hash = u64::from_le_bytes(self.array(at + 8)?);
                Known::Beginning(self.bytes(at + 16, kept)?.to_vec(), hash)
            }
            _ => Known::All(self.bytes(at + 8, kept)?.to_vec()),
        };
        Ok(Stored { length, known })
    }

    /// The known bytes at the beginning, as [`Stored::bytes`], without copying them.
    ///
    /// # Errors
    /// If it cannot be read, or this place has no text.
    pub fn known_bytes(&mut self, place: u32) -> io::Result<Option<&[u8]>> {
        let at = u64::from(place) * UNIT;
        let head = u64::from_le_bytes(self.array(at)?);
        let (kind, kept, length) = (head & 3, (head >> 2 & 0x3fff) as usize, head >> 16);
        match kind {
            MARK => Ok(None),
            FULL if length > kept as u64 => self.bytes(at + 16, kept).map(Some),
            _ => self.bytes(at + 8, kept).map(Some),
        }
    }

    /// Equal for equal texts, as far as can be known: as [`Stored::identity`], without copying the text.
    ///
    /// # Errors
    /// If it cannot be read, or this place has no text.
    pub fn identity(&mut self, place: u32) -> io::Result<Option<(u64, u64)>> {
        let at = u64::from(place) * UNIT;
        let head = u64::from_le_bytes(self.array(at)?);
        let (kind, kept, length) = (head & 3, (head >> 2 & 0x3fff) as usize, head >> 16);
        let hash = match kind {
            TRUNCATED => return Ok(None),
            FULL if length == kept as u64 => hash(self.bytes(at + 8, kept)?),
            _ => u64::from_le_bytes(self.array(at + 8)?),
        };
        Ok(Some((hash, length)))
    }

    fn array(&mut self, at: u64) -> io::Result<[u8; 8]> {
        let mut array = [0; 8];
        array.copy_from_slice(self.bytes(at, 8)?);
        Ok(array)
    }

    fn bytes(&mut self, at: u64, count: usize) -> io::Result<&[u8]> {
        let end = at + count as u64;
        if at < self.start || end > self.start + self.window.len() as u64 {
            self.read(at, WINDOW)?;
        }
        let from = (at - self.start) as usize;
        let bytes = self.window.get(from..from + count);
        bytes.ok_or_else(|| invalid("a text beyond the end of the texts"))
    }

    fn read(&mut self, at: u64, count: usize) -> io::Result<()> {
        let rest = self.texts.length.saturating_sub(at).min(count as u64) as usize;
        self.window.resize(rest, 0);
        self.start = at;
        match &self.texts.file {
            Some(file) => file.read_exact_at(&mut self.window, self.texts.begin + at),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memprof_dump::record::{CodeRange, NameId};

    fn text(content: Content<'_>, length: u64) -> Text<'_> {
        Text {
            length: Some(length),
            capacity: None,
            encoding: NameId(0),
            coderange: CodeRange::Valid,
            content,
        }
    }

    #[test]
    fn gives_back_what_was_stored() {
        let long = vec![b'x'; 5000];
        let mut other = long.clone();
        other[4999] = b'y';
        let mut writer = TextWriter::new(tempfile::tempfile().expect("a file")).expect("a writer");
        let mut push = |content, length| writer.push(&text(content, length)).expect("room");
        let places = [
            push(Content::Full(b""), 0),
            push(Content::Full(b"user:42"), 7),
            push(Content::Full(&long), 5000),
            push(Content::Full(&other), 5000),
            push(Content::Truncated(b"user"), 7),
            push(Content::Mark(99), 7),
            push(Content::Full(b"user:42"), 7),
        ];
        assert_eq!(push(Content::Absent, 7), NONE);
        let (_, texts) = writer.finish().expect("written");
        let mut reader = texts.reader();
        let all = places.map(|place| reader.get(place).expect("there"));
        for (place, stored) in places.iter().zip(&all) {
            assert_eq!(&texts.get(*place).expect("there"), stored);
            assert_eq!(reader.identity(*place).expect("there"), stored.identity());
            assert_eq!(reader.known_bytes(*place).expect("there"), stored.bytes());
        }
        assert_eq!(all[0].known, Known::All(Vec::new()));
        assert_eq!(all[1].known, Known::All(b"user:42".to_vec()));
        assert!(matches!(&all[2].known, Known::Beginning(bytes, _) if bytes.len() == KEPT));
        assert_eq!(all[2].length, 5000);
        assert_ne!(all[2].identity(), all[3].identity());
        assert_eq!(all[4].identity(), None);
        assert_eq!(all[5], Stored { length: 7, known: Known::Mark(99) });
        assert_eq!(all[1].identity(), all[6].identity());
        assert!(texts.get(100_000).is_err());
    }
}
