# frozen_string_literal: true

module Memprof
  # Loads a part of memprof before a program's first line, as `memprof run`, `boot` and `malloc` do in every
  # Ruby process of a command.
  #
  # A failure here only prints one line on stderr: a program that cannot be measured must still run. That
  # includes a Ruby other than the one the extension was built for, hence the LoadError.
  module Preload
    # The command `spring` leaves the work to a server, which outlives it.
    SPRING = "spring"
    SPRING_WORKS = "Spring runs the command in its server: run it without `spring`"
    AUTORUN = %r{\A-r\S*memprof/(?:\w+/)?autorun\z}
    private_constant :SPRING, :SPRING_WORKS, :AUTORUN

    def self.run(consequence)
      return leave_spring(consequence) if File.basename($PROGRAM_NAME) == SPRING

      lib = File.expand_path("..", __dir__)
      $LOAD_PATH.unshift(lib) unless $LOAD_PATH.include?(lib)
      yield
    rescue LoadError, StandardError => e
      say(consequence, e.message.lines.first.to_s.chomp.gsub(/[[:cntrl:]]/, "?"))
    end

    # Neither the client nor the server it may start is tracked: one does nothing, the other never ends.
    def self.leave_spring(consequence)
      ENV["RUBYOPT"] = ENV["RUBYOPT"].to_s.split.grep_v(AUTORUN).join(" ")
      say(consequence, SPRING_WORKS)
    end
    private_class_method :leave_spring

    def self.say(consequence, reason)
      $stderr.write("memprof: #{consequence}: #{reason}\n")
    rescue SystemCallError, IOError
      nil # stderr is closed
    end
    private_class_method :say
  end
end
