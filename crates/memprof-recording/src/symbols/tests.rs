use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::*;
use crate::stacks::{Counts, Node, Stacks};

/// A library with an exported and a hidden function, built in a temporary directory.
struct Library {
    directory: tempfile::TempDir,
    path: PathBuf,
}

const SOURCE: &str = "\
    __attribute__((noinline)) static int hidden(int x) { __asm__ volatile (\"\"); return x * 3; }\n\
    int exported(int x) { return hidden(x) + 1; }\n";

/// Nested inline functions, two of which call another one.
const NESTED: &str = "\
    #define INLINED static inline __attribute__((always_inline)) int\n\
    __attribute__((noinline)) int called(int x) { __asm__ volatile (\"\"); return x * 3; }\n\
    INLINED inner(int x) {\n return called(x) + 1;\n }\n\
    INLINED middle(int x) {\n return inner(x) * 2 + called(x + 7);\n }\n\
    int outer(int x) {\n return middle(x) - called(x);\n }\n";

impl Library {
    /// None if there is no compiler.
    fn new() -> Option<Library> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lib.so");
        let source = directory.path().join("lib.c");
        fs::write(&source, SOURCE).unwrap();
        let library = Library { directory, path };
        let (out, source) = (library.path.to_str()?, source.to_str()?);
        let flags = ["-g", "-O1", "-shared", "-fPIC", "-Wl,--build-id=sha1"];
        library.run("cc", &[&flags[..], &["-o", out, source]].concat())?;
        Some(library)
    }

    fn run(&self, command: &str, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new(command);
        let output = command.args(arguments).current_dir(self.directory.path()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Start address of a function.
    fn start(&self, function: &str) -> u64 {
        let lines = self.run("nm", &["lib.so"]).unwrap();
        let line = lines.lines().find(|line| line.ends_with(&format!(" {function}"))).unwrap();
        u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap()
    }

    fn frame(&self, offset: u64, function: &str, distance: u64) -> Frame {
        Frame::Native(Native {
            address: 0x7f00_0000_0000 + offset,
            module: self.path.to_str().unwrap().to_owned(),
            offset,
            function: function.to_owned(),
            distance,
            ..Native::default()
        })
    }

    fn strip(&self, arguments: &[&str]) {
        self.run("objcopy", &["--only-keep-debug", "lib.so", "lib.debug"]).unwrap();
        self.run("strip", &["--strip-all", "lib.so"]).unwrap();
        self.run("objcopy", arguments).unwrap();
    }
}

fn named(frames: &[Frame], debug_files: &Path) -> Vec<(String, u64)> {
    let mut frames = frames.to_vec();
    name_by(&mut frames, debug_files, None);
    let names = frames.into_iter().map(|frame| match frame {
        Frame::Native(native) => (native.function, native.distance),
        Frame::Ruby { method, .. } => (method, 0),
    });
    names.collect()
}

fn name(function: &str, distance: u64) -> (String, u64) {
    (function.to_owned(), distance)
}

#[test]
fn finds_names_in_the_library_or_in_its_debug_file() {
    let Some(library) = Library::new() else {
        return;
    };
    let (hidden, exported) = (library.start("hidden"), library.start("exported"));
    let frames = [
        library.frame(hidden + 2, "", 0),
        library.frame(exported + 3, "exported", 3),
        library.frame(8, "", 0),
        Frame::Ruby { path: "/app.rb".into(), line: 1, method: "run".into() },
    ];
    let expected = [name("hidden", 2), name("exported", 3), name("", 0), name("run", 0)];
    let none = library.directory.path().join("none");
    assert_eq!(named(&frames, &none), expected);

    // Names found by debug link: beside the library, below it, and where distributions install them.
    library.strip(&["--add-gnu-debuglink=lib.debug", "lib.so"]);
    assert_eq!(named(&frames, &none), expected);
    let root = library.directory.path();
    let elsewhere = root.join("debug");
    let mirrored = elsewhere.join(root.strip_prefix("/").unwrap());
    for directory in [root.join(".debug"), mirrored] {
        fs::create_dir_all(&directory).unwrap();
        let _ = fs::rename(root.join("lib.debug"), directory.join("lib.debug"));
        assert_eq!(named(&frames, &elsewhere), expected, "{}", directory.display());
        fs::rename(directory.join("lib.debug"), root.join("lib.debug")).unwrap();
    }
    let mut damaged = fs::read(root.join("lib.debug")).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(root.join("lib.debug"), damaged).unwrap();
    assert_eq!(named(&frames, &none)[0], name("", 0));
}

/// The source line of each frame.
fn sources(frames: &[Frame], debug_files: &Path) -> Vec<Option<String>> {
    let mut frames = frames.to_vec();
    name_by(&mut frames, debug_files, None);
    let sources = frames.into_iter().map(|frame| match frame {
        Frame::Native(native) => native.source(),
        Frame::Ruby { .. } => None,
    });
    sources.collect()
}

#[test]
fn finds_lines_in_the_library_or_in_its_debug_file() {
    let Some(library) = Library::new() else {
        return;
    };
    let (hidden, exported) = (library.start("hidden"), library.start("exported"));
    let frames = [
        library.frame(exported + 3, "exported", 3),
        library.frame(hidden + 2, "", 0),
        library.frame(8, "", 0),
    ];
    let expected = [Some("lib.c:2".to_owned()), Some("lib.c:1".to_owned()), None];
    let none = library.directory.path().join("none");
    assert_eq!(sources(&frames, &none), expected);
    for flags in [["-gdwarf-4", "-gz=none"], ["-gdwarf-5", "-gz=zlib"]] {
        let built = ["-g", "-O1", "-shared", "-fPIC", "-o", "lib.so", "lib.c"];
        library.run("cc", &[&flags[..], &built[..]].concat()).unwrap();
        assert_eq!(sources(&frames, &none), expected, "{flags:?}");
    }
    library.strip(&["--add-gnu-debuglink=lib.debug", "lib.so"]);
    assert_eq!(sources(&frames, &none), expected);
    let root = library.directory.path();
    let mut named = frames.to_vec();
    name_by(&mut named, &none, None);
    assert_eq!(named[1].label(), "hidden (lib.so, lib.c:1)");
    let Frame::Native(native) = &named[1] else {
        panic!("{named:?}");
    };
    assert_eq!(Path::new(&native.file), root.join("lib.c"));
    fs::remove_file(root.join("lib.debug")).unwrap();
    assert_eq!(sources(&frames, &none), [None, None, None]);
}

/// Output of binutils' `addr2line` for the call before an address: function and line, innermost first.
fn by_addr2line(library: &Library, address: u64) -> Option<Vec<(String, String)>> {
    let address = format!("{:#x}", address - 1);
    let said = library.run("addr2line", &["-f", "-i", "-s", "-e", "lib.so", &address])?;
    let lines: Vec<&str> = said.lines().collect();
    let pairs = lines.chunks_exact(2);
    Some(pairs.map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect())
}

#[test]
fn finds_functions_in_functions() {
    let Some(library) = Library::new() else {
        return;
    };
    fs::write(library.directory.path().join("lib.c"), NESTED).unwrap();
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let flags = [version, "-O1", "-shared", "-fPIC", "-o", "lib.so", "lib.c"];
        library.run("cc", &flags).unwrap();
        let outer = library.start("outer");
        let mut deepest = 0;
        for offset in outer + 1..outer + 40 {
            let Some(expected) = by_addr2line(&library, offset) else {
                return;
            };
            if expected.last().is_none_or(|(function, _)| function != "outer") {
                break;
            }
            let frames = vec![library.frame(offset, "outer", offset - outer)];
            let mut stacks = Stacks {
                frames,
                nodes: vec![Node { parent: None, frame: 0 }],
                counts: vec![(0, Counts::default())],
            };
            stacks.name();
            let found: Vec<(String, String)> = stacks
                .path(stacks.counts[0].0)
                .filter_map(|node| match stacks.frame(node) {
                    Frame::Native(native) => {
                        assert_eq!(native.inlined, native.function != "outer");
                        Some((native.function.clone(), native.source()?))
                    }
                    Frame::Ruby { .. } => None,
                })
                .collect();
            assert_eq!(found, expected, "{offset:#x}");
            deepest = deepest.max(found.len());
        }
        assert_eq!(deepest, 3, "{version}");
    }
}

#[test]
fn callers_and_callees_stay_beside_functions_in_functions() {
    let Some(library) = Library::new() else {
        return;
    };
    fs::write(library.directory.path().join("lib.c"), NESTED).unwrap();
    let flags = ["-g", "-O1", "-shared", "-fPIC", "-o", "lib.so", "lib.c"];
    library.run("cc", &flags).unwrap();
    let outer = library.start("outer");
    let deep = |offset: &u64| {
        by_addr2line(&library, *offset).is_some_and(|functions| functions.len() == 3)
    };
    let Some(offset) = (outer + 1..outer + 40).find(deep) else {
        return;
    };
    let ruby =
        |method: &str| Frame::Ruby { path: "/app.rb".into(), line: 1, method: method.into() };
    let node = |parent, frame| Node { parent, frame };
    let mut stacks = Stacks {
        frames: vec![ruby("run"), library.frame(offset, "", 0), ruby("called")],
        nodes: vec![node(None, 0), node(Some(0), 1), node(Some(1), 2), node(None, 1)],
        counts: [1, 2, 3].map(|node| (node, Counts::default())).to_vec(),
    };
    stacks.name();
    let names = |node: u32| {
        let names = stacks.path(node).map(|node| match stacks.frame(node) {
            Frame::Native(native) => native.function.clone(),
            Frame::Ruby { method, .. } => method.clone(),
        });
        names.collect::<Vec<String>>().join(" ")
    };
    let names: Vec<String> = stacks.counts.iter().map(|(node, _)| names(*node)).collect();
    let within = "inner middle outer";
    assert_eq!(names, [format!("{within} run"), format!("called {within} run"), within.to_owned()]);
    let innermost = stacks.frame(stacks.counts[0].0);
    assert_eq!(innermost.label(), "inner (lib.so, lib.c:4)");
    let place = format!("{}(inner) [", library.path.display());
    assert!(innermost.location().starts_with(&place), "{}", innermost.location());
}

#[test]
fn finds_a_debug_file_by_the_id_of_the_build() {
    let Some(library) = Library::new() else {
        return;
    };
    let frames = [library.frame(library.start("hidden") + 2, "", 0)];
    library.strip(&["--remove-section=.none", "lib.so"]);
    let root = library.directory.path();
    let notes = library.run("readelf", &["-n", "lib.so"]).unwrap();
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap();
    let directory = root.join("debug/.build-id").join(&id[..2]);
    fs::create_dir_all(&directory).unwrap();
    let file = directory.join(format!("{}.debug", &id[2..]));
    assert_eq!(named(&frames, &root.join("debug")), [name("", 0)]);
    // From another build.
    let other = Library::new().unwrap();
    other.run("cc", &["-shared", "-fPIC", "-Wl,--build-id=sha1", "-DX", "-o", "lib.so", "lib.c"]);
    fs::copy(&other.path, &file).unwrap();
    assert_eq!(named(&frames, &root.join("debug")), [name("", 0)]);
    fs::copy(root.join("lib.debug"), &file).unwrap();
    assert_eq!(named(&frames, &root.join("debug")), [name("hidden", 2)]);
}

#[test]
fn does_not_believe_a_file_that_has_changed_or_is_damaged() {
    let Some(library) = Library::new() else {
        return;
    };
    let hidden = library.frame(library.start("hidden") + 2, "", 0);
    let exported = library.start("exported");
    let none = Path::new("/nonexistent");
    let moved = library.frame(exported + 19, "exported", 3);
    assert_eq!(named(&[hidden.clone(), moved], none)[0], name("", 0));
    let gone = library.frame(exported + 3, "renamed", 3);
    assert_eq!(named(&[hidden.clone(), gone], none)[0], name("", 0));
    let whole = fs::read(&library.path).unwrap();
    for length in (0..whole.len()).step_by(97) {
        fs::write(&library.path, &whole[..length]).unwrap();
        named(std::slice::from_ref(&hidden), none);
    }
    for at in (0..whole.len()).step_by(5) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        fs::write(&library.path, bytes).unwrap();
        let mut frames = [hidden.clone()];
        name_by(&mut frames, none, Some(&mut Inlined::default()));
    }
}

#[test]
fn a_file_whose_tables_would_take_all_memory_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lib.so");
    let mut header = [0_u8; 128];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(20, &[1]);
    put(40, &64_u64.to_le_bytes());
    put(58, &[64]);
    put(62, &[1]);
    // The first section has the number of sections, as in files with more than fit into the header.
    let number = elf_file::MOST_BYTES_OF_FILE / 64;
    put(64 + 32, &number.to_le_bytes());
    fs::write(&path, header).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    // A sparse file.
    file.set_len(2 * elf_file::MOST_BYTES_OF_FILE).unwrap();
    assert!(ElfFile::open(&path).unwrap().parse().is_none());
    let fewer = (number / 1024).to_le_bytes();
    std::os::unix::fs::FileExt::write_all_at(&file, &fewer, 64 + 32).unwrap();
    assert!(ElfFile::open(&path).unwrap().parse().is_some());
}
