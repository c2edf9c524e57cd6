# frozen_string_literal: true

# Writes a Makefile that builds the extension with cargo and nothing else: no gem is needed for it.
#
# The library goes into the directory for this Ruby in the gem's own lib/, where lib/memprof/native.rb looks
# first. RubyGems would copy what it is given to lib/ and once more to extensions/.

require "rbconfig"
require "shellwords"

def executable(name, *elsewhere)
  found = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).map { |directory| File.join(directory, name) }
  [*found, *elsewhere].find { |path| File.file?(path) && File.executable?(path) }
end

# A word of a command in a Makefile.
def word(text) = text.shellescape.gsub("$", "$$")

cargo = executable("cargo", File.expand_path("~/.cargo/bin/cargo"))
abort(<<~TEXT) unless cargo
  memprof is built with Rust, and there is no cargo on PATH. Install Rust 1.85 or newer, then memprof again:
    https://rustup.rs, or the packages cargo and libclang-dev of Debian 13 and newer
TEXT

config = RbConfig::CONFIG
root = File.expand_path("../..", __dir__)
library = File.join(root, "lib/memprof", config["ruby_version"][/\A\d+\.\d+/], "memprof.#{config["DLEXT"]}")
target = File.join(__dir__, "target")
built = File.join(target, "release", "libmemprof.#{config["SOEXT"]}")
# rb-sys asks the Ruby that is named here. Where the build goes is no matter of settings for other projects.
environment = ["env", "-u", "CARGO_BUILD_TARGET", "RUBY=#{RbConfig.ruby}"]
build = [*environment, cargo, "build", "--locked", "--release", "--package", "memprof",
  "--manifest-path", File.join(root, "Cargo.toml"), "--target-dir", target]

# The names of functions are an eighth of the library. They go into a file beside it, which crash reports of
# Ruby and debuggers find by the link that the library has to it. Without binutils they stay where they are.
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
