//! Writes into protected pages and restores their protection.

use std::fs;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The page protections of the process, as of one moment.
pub(super) struct Pages(Vec<(usize, usize, i32)>);

impl Pages {
    /// Reads them from the kernel.
    pub fn read() -> io::Result<Pages> {
        let maps = fs::read("/proc/self/maps")?;
        Ok(Pages(maps.split(|&byte| byte == b'\n').filter_map(parse).collect()))
    }

    fn protection(&self, address: usize) -> Option<i32> {
        let next = self.0.partition_point(|&(start, _, _)| start <= address);
        let &(_, end, protection) = self.0.get(next.checked_sub(1)?)?;
        (address < end).then_some(protection)
    }

    /// Exchanges words of one object: each `(address, from, to)` if it is still `from`. Records which were exchanged.
    ///
    /// # Errors
    ///
    /// When the kernel refuses; earlier words have been exchanged, and are in the vector.
    ///
    /// # Safety
    ///
    /// The addresses must be words of a pinned object that the loader has relocated.
    pub unsafe fn exchange(
        &self,
        words: &[(usize, usize, usize)],
        exchanged: &mut Vec<bool>,
    ) -> Result<(), io::Error> {
        let page_size = page_size();
        let page = |address: usize| address & !(page_size - 1);
        let mut rest = words;
        while let Some(&(first, _, _)) = rest.first() {
            let protection = self.protection(first);
            // Words on one page, or on adjacent pages with the same protection, in one go.
            let mut end = page(first) + page_size;
            let mut count = 0;
            for &(address, _, _) in rest {
                let next = page(address) + page_size;
                if next < end || next > end + page_size || self.protection(address) != protection {
                    break;
                }
                end = next;
                count += 1;
            }
            let (now, later) = rest.split_at(count);
            let protection =
                protection.ok_or_else(|| io::Error::from_raw_os_error(libc::EFAULT))?;
            let is_writable = protection & libc::PROT_WRITE != 0;
            let range = (page(first), end - page(first));
            if !is_writable {
                // SAFETY: pages of a pinned object; they stay readable.
                unsafe { protect(range, protection | libc::PROT_WRITE) }?;
            }
            for &(address, from, to) in now {
                // SAFETY: an aligned word of a pinned object, on a writable page; others may read it.
                let word = unsafe { AtomicUsize::from_ptr(address as *mut usize) };
                exchanged.push(word.compare_exchange(from, to, SeqCst, SeqCst).is_ok());
            }
            if !is_writable {
                // SAFETY: as above; the pages get their protection back.
                unsafe { protect(range, protection) }?;
            }
            rest = later;
        }
        Ok(())
    }
}

unsafe fn protect((start, size): (usize, usize), protection: i32) -> io::Result<()> {
    // SAFETY: the caller's promise.
    match unsafe { libc::mprotect(start as *mut libc::c_void, size, protection) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn page_size() -> usize {
    // SAFETY: takes a number, has no effect.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// `start-end rwxp ...`
fn parse(line: &[u8]) -> Option<(usize, usize, i32)> {
    let mut fields = line.split(|&byte| byte == b' ');
    let (start, end) = std::str::from_utf8(fields.next()?).ok()?.split_once('-')?;
    let allowed = fields.next()?;
    let flags = [(b'r', libc::PROT_READ), (b'w', libc::PROT_WRITE), (b'x', libc::PROT_EXEC)];
    let protection =
        flags.iter().filter(|(letter, _)| allowed.contains(letter)).map(|(_, flag)| flag).sum();
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?, protection))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        assert_eq!(
            parse(b"7f00-8f00 r-xp 00000000 08:01 12  /lib/x.so"),
            Some((0x7f00, 0x8f00, libc::PROT_READ | libc::PROT_EXEC))
        );
        assert_eq!(parse(b"0-1000 ---p 0 0:0 0"), Some((0, 0x1000, 0)));
        assert_eq!(parse(b"rubbish"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn a_word_on_a_page_that_is_read_only() {
        let size = page_size();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new pages, used only by this test.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                access,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(page, libc::MAP_FAILED);
        let address = page as usize;
        // SAFETY: the page mapped above.
        unsafe { protect((address, size), libc::PROT_READ) }.unwrap();
        let pages = Pages::read().unwrap();
        let mut exchanged = Vec::new();
        // SAFETY: words of the page mapped above.
        unsafe { pages.exchange(&[(address, 0, 7), (address + 8, 1, 9)], &mut exchanged) }.unwrap();
        assert_eq!(exchanged, [true, false]);
        // SAFETY: the page can be read.
        assert_eq!(unsafe { *(address as *const [usize; 2]) }, [7, 0]);
        assert_eq!(Pages::read().unwrap().protection(address), Some(libc::PROT_READ));
    }
}
