# frozen_string_literal: true

# `memprof malloc` has every Ruby process of a command load this file before the program's own first line.
# Whatever fails here fails with one line on stderr, as in memprof/autorun: the program must still run.
begin
  lib = File.expand_path("../..", __dir__)
  $LOAD_PATH.unshift(lib) unless $LOAD_PATH.include?(lib)
  require "memprof/malloc"
rescue LoadError, StandardError => e
  begin
    $stderr.write("memprof: malloc of process #{Process.pid} is not recorded: " \
                  "#{e.message.lines.first.to_s.chomp.gsub(/[[:cntrl:]]/, "?")}\n")
  rescue SystemCallError, IOError
    nil # stderr is closed
  end
end
