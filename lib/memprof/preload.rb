# frozen_string_literal: true

module Memprof
  # Loads a part of memprof before a program's own first line, as `memprof run`, `boot` and `malloc` have
  # every Ruby process of a command do.
  #
  # Whatever fails here fails with one line on stderr: a program that cannot be measured must still run. That
  # includes a Ruby other than the one the extension was built for, hence the LoadError.
  module Preload
    def self.run(consequence)
      lib = File.expand_path("..", __dir__)
      $LOAD_PATH.unshift(lib) unless $LOAD_PATH.include?(lib)
      yield
    rescue LoadError, StandardError => e
      begin
        reason = e.message.lines.first.to_s.chomp.gsub(/[[:cntrl:]]/, "?")
        $stderr.write("memprof: #{consequence}: #{reason}\n")
      rescue SystemCallError, IOError
        nil # stderr is closed
      end
    end
  end
end
