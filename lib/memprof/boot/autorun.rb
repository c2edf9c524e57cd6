# frozen_string_literal: true

# `memprof boot` has every Ruby process of a command load this file before the program's own first line.
#
# Whatever fails here fails with one line on stderr: a program that cannot be measured must still run. That
# includes a Ruby other than the one the extension was built for, hence the LoadError.
begin
  lib = File.expand_path("../..", __dir__)
  $LOAD_PATH.unshift(lib) unless $LOAD_PATH.include?(lib)
  require "memprof/boot/boot_recorder"
  Memprof::Boot::BootRecorder.start(ENV)
rescue LoadError, StandardError => e
  begin
    $stderr.write("memprof: process #{Process.pid} is not measured: #{e.message.lines.first.to_s.chomp}\n")
  rescue SystemCallError, IOError
    nil # stderr is closed
  end
end
