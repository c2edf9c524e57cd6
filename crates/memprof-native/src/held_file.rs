//! A file written to inside a program that does not know about it.

use std::fs::File;
use std::io::{self, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::MetadataExt;

/// An open file. The program may close it, as daemons close all inherited descriptors; its number may then belong to a file
/// or connection of the program, which is left alone.
#[derive(Debug)]
pub struct HeldFile {
    file: ManuallyDrop<File>,
    /// Device and inode.
    identity: (u64, u64),
}

impl HeldFile {
    /// Takes over an open file.
    ///
    /// # Errors
    ///
    /// When it is not open.
    pub fn new(file: File) -> io::Result<HeldFile> {
        let file = ManuallyDrop::new(file);
        let identity = identity(&file)?;
        Ok(HeldFile { file, identity })
    }

    /// Whether a descriptor refers to the same file.
    #[must_use]
    pub fn is(&self, descriptor: RawFd) -> bool {
        // SAFETY: the file is never dropped, so the descriptor stays with its owner; it is only asked which file it refers
        // to, and being closed is a valid answer.
        let other = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
        identity(&other).is_ok_and(|identity| identity == self.identity)
    }

    /// Whether the program has not closed it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is(self.file.as_raw_fd())
    }

    /// Truncates the file to this length.
    ///
    /// # Errors
    ///
    /// System errors, or an error if the program has closed the file.
    pub fn set_len(&self, length: u64) -> io::Result<()> {
        self.check()?;
        self.file.set_len(length)
    }

    fn check(&self) -> io::Result<()> {
        match self.is_open() {
            true => Ok(()),
            false => Err(io::Error::other("the program closed the file")),
        }
    }
}

fn identity(file: &File) -> io::Result<(u64, u64)> {
    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

impl Write for HeldFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        if self.is_open() {
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_took_its_number_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (ours, theirs) = (directory.path().join("ours"), directory.path().join("theirs"));
        let file = File::create(&ours).unwrap();
        let number = file.as_raw_fd();
        let mut held = HeldFile::new(file).unwrap();
        held.write_all(b"one").unwrap();
        let other = File::create(&theirs).unwrap();
        // SAFETY: the descriptor of `held` becomes another one of `other`; `held` has to notice that.
        unsafe { libc::dup2(other.as_raw_fd(), number) };
        assert!(!held.is_open() && !held.is(other.as_raw_fd()));
        assert!(held.write_all(b"two").is_err() && held.set_len(0).is_err());
        drop(held);
        // SAFETY: the descriptor is still open, and no `File` owns it.
        assert_eq!(unsafe { libc::close(number) }, 0);
        assert_eq!(fs::read(&ours).unwrap(), b"one");
        assert_eq!(fs::read(&theirs).unwrap(), b"");
    }

    #[test]
    fn one_that_is_closed_is_no_fault() {
        let file = tempfile::tempfile().unwrap();
        let number = file.as_raw_fd();
        let held = HeldFile::new(file).unwrap();
        assert!(held.is_open());
        // SAFETY: closes the descriptor of `held`; `held` has to notice that.
        unsafe { libc::close(number) };
        drop(held);
    }
}
