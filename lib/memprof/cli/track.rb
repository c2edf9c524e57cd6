# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof track`: runs a script in this process and prints its live objects at the end.
    class Track < Command
      SUMMARY = "runs a Ruby script and prints the objects that it leaves behind"
      USAGE = "[OPTIONS] SCRIPT [ARGUMENTS]"
      DETAILS = <<~TEXT
        When the script ends, even by an exception, memprof prints the objects that it
        allocated and that are still live, most first: number, file, line and class. The
        exit status is the script's.

        Examples:
          memprof track script.rb
          memprof track --gc --limit 10 script.rb --its-own option
      TEXT

      # Runs the script, and prints at its end. The script's `exit` and exceptions pass through.
      def call(arguments)
        script, *script_arguments = arguments
        raise UsageError, "no script given; see `memprof help track`" unless script
        readable = File.file?(script) && File.readable?(script)
        raise UsageError, "cannot read the script #{script}" unless readable

        if File.basename(script) == "spring"
          raise UsageError, "Spring runs the command in its server; track the script that it runs"
        end

        load_library
        ENV.update(Program::WITHOUT_SPRING)
        @own_files = caller_locations.map(&:path).uniq
        pose_as(script, script_arguments)
        pid = Process.pid
        session = nil
        # Registered before the script's own handlers, so that it runs after them: a test framework does all
        # its work there.
        at_exit { print_stats(session) if session && pid == Process.pid }
        program = compile(script)
        session = Session.prepare(sample: @options[:sample])
        session.open
        program.eval
        0
      rescue Exception => e # rubocop:disable Lint/RescueException -- goes on to its handler
        hide_this_file(e)
        raise
      end

      private

      # The script's exceptions are its own.
      def guard = yield

      # As if Ruby had been started with the script.
      def pose_as(script, arguments)
        ARGV.replace(arguments)
        $PROGRAM_NAME = script
      end

      # Unlike `load`, which searches the load path first, this takes exactly that file, under the name the
      # user gave it.
      def compile(script)
        define_data(script)
        RubyVM::InstructionSequence.compile_file(script)
      end

      # Ruby defines DATA only for the program it was started with.
      def define_data(script)
        source = File.binread(script)
        marker = source.match(/^__END__\r?\n/) or return

        data = File.open(script)
        data.seek(marker.end(0))
        Object.const_set(:DATA, data)
      end

      def print_stats(session)
        session.finish
        2.times { GC.start } if @options[:gc] # the second GC frees objects with finalizers
        text = stats(session)
        session.close
        deliver(text)
      rescue StandardError => e
        @terminal.warn("cannot show the objects: #{e.message}")
      end

      # Without objects allocated by memprof's own files, such as the exception of the last `exit`.
      def stats(session)
        rows = session.stats.reject { |_, file, _, _| @own_files.include?(file) }
        rows = rows.first(@options[:limit]) if @options[:limit]
        rows.map { |row| format("%7d %s:%d:%s\n", *row) }.join
      end

      # The user's backtrace begins in the script.
      def hide_this_file(error)
        lines = error.backtrace
        first = lines&.rindex { |line| line.start_with?(__FILE__) && line.include?("call") }
        error.set_backtrace(lines[0...first].reject { |line| line.start_with?(__FILE__) }) if first
      end
    end
  end
end
