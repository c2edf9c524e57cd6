# frozen_string_literal: true

# Writes a Makefile that builds the extension with nothing but cargo, not even another gem.
#
# The library goes into the directory for this Ruby in the gem's own lib/, where lib/memprof/native.rb looks
# first. RubyGems would copy it both to lib/ and to extensions/.

require "rbconfig"
require "shellwords"

def executable(name, *elsewhere)
  found = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).map { |directory| File.join(directory, name) }
  [*found, *elsewhere].find { |path| File.file?(path) && File.executable?(path) }
end

# Escapes a word of a command in a Makefile.
def word(text) = text.shellescape.gsub("$", "$$")

# The version that the compiler reports, if it runs.
def version_of(compiler)
  IO.popen([compiler, "--version", err: File::NULL], &:read)[/\d+\.\d+/]
rescue SystemCallError
  nil
end

# Whether bindgen can find libclang, searched as by clang-sys or known to the linker.
def libclang?
  return true if ENV["LIBCLANG_PATH"] || ENV["LLVM_CONFIG_PATH"] || executable("llvm-config")

  elsewhere = ENV.fetch("LD_LIBRARY_PATH", "").split(":")
  usual = %w[/usr/lib /usr/lib64 /usr/lib/* /usr/lib*/llvm-*/lib /usr/lib*/llvm/*/lib* /usr/local/lib
    /usr/local/llvm*/lib* /opt/homebrew/opt/llvm/lib /usr/local/opt/llvm*/lib
    /Library/Developer/CommandLineTools/usr/lib]
  # Not libclang-cpp, which bindgen can't use.
  names = "libclang{,-[0-9]*}.{so,so.*,dylib}"
  [*elsewhere, *usual].any? { |directory| Dir.glob(File.join(directory, names)).any? }
end

root = File.expand_path("../..", __dir__)
needed = File.read(File.join(root, "Cargo.toml"))[/^rust-version = "([\d.]+)"/, 1]
cargo = executable("cargo", File.expand_path("~/.cargo/bin/cargo"))
rustc = ENV["RUSTC"] || executable("rustc", File.expand_path("~/.cargo/bin/rustc"))
found = rustc && version_of(rustc)
rust = "https://rustup.rs, or the packages cargo and rustc of Debian 13 and newer"

abort(<<~TEXT) unless cargo && found
  memprof is built with Rust, and #{cargo ? "rustc does not run" : "cargo is not on PATH"}. Install Rust #{needed} or newer, then memprof again:
    #{rust}
TEXT
abort(<<~TEXT) if Gem::Version.new(found) < Gem::Version.new(needed)
  memprof needs Rust #{needed} or newer, and #{rustc} is #{found}. Update Rust (`rustup update`), then install memprof again:
    #{rust}
TEXT
abort(<<~TEXT) unless libclang?
  memprof needs libclang to read Ruby's headers, and it was not found. Install it, or set LIBCLANG_PATH, then install memprof again:
    apt-get install libclang-dev, dnf install clang-devel, apk add clang-dev, or brew install llvm
TEXT

config = RbConfig::CONFIG
library = File.join(root, "lib/memprof", config["ruby_version"][/\A\d+\.\d+/], "memprof.#{config["DLEXT"]}")
target = File.join(__dir__, "target")
built = File.join(target, "release", "libmemprof.#{config["SOEXT"]}")
# rb-sys runs the Ruby named here. Settings for other projects must not change the target directory.
environment = ["env", "-u", "CARGO_BUILD_TARGET", "RUBY=#{RbConfig.ruby}"]
build = [*environment, cargo, "build", "--locked", "--release", "--package", "memprof",
  "--manifest-path", File.join(root, "Cargo.toml"), "--target-dir", target]

# The names of functions take an eighth of the library. They are moved to a file beside it, which debuggers
# and Ruby's crash reports find by the library's debug link. Without binutils they remain in the library.
objcopy = executable("objcopy") if RUBY_PLATFORM.include?("linux")
symbols = "#{library}.debug"
split = [
  [objcopy, "--only-keep-debug", "#{library}.new", symbols],
  [objcopy, "--strip-all", "--add-gnu-debuglink=#{symbols}", "#{library}.new"]
]
steps = objcopy ? split.map { |step| "\n\t#{step.map { |part| word(part) }.join(" ")}" }.join : ""

File.write("Makefile", <<~MAKEFILE)
  all:
  \t#{build.map { |part| word(part) }.join(" ")}

  install: all
  \tmkdir -p #{word(File.dirname(library))}
  \tcp #{word(built)} #{word("#{library}.new")}#{steps}
  \tmv #{word("#{library}.new")} #{word(library)}
  \trm -rf #{word(target)}

  clean:
  \trm -rf #{word(target)}

  .PHONY: all install clean
MAKEFILE
