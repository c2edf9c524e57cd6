# frozen_string_literal: true

module Memprof
  module CLI
    # Where the commands print: results to stdout, all else to stderr. Messages on stderr may contain names
    # given by others (of files, processes, classes), so control characters are escaped.
    class Terminal
      def initialize(out: $stdout, err: $stderr)
        @out = out
        @err = err
      end

      def tty?
        @out.tty?
      rescue IOError
        false
      end

      def width = dimension(1) || 80
      def height = dimension(0) || 24
      def columns = tty? ? width : nil
      def color? = Paint.wanted?(@out)

      def bold(text) = Paint.new(color?).call(text, :bold)

      # Prints a result. A closed pipe (`memprof ... | head -1`) is not an error.
      def print(text) = output { |out| out.write(text) }

      def puts(text) = print("#{text}\n")

      def print_file(path) = output { |out| IO.copy_stream(path, out) }

      # Prints a long result, through a pager if it doesn't fit on the screen.
      def page(text) = tty? && Pager.show(text, height) ? true : print(text)

      # Suggests what to do next, on stderr.
      def hint(text)
        text = text.chomp.split("\n").map { |line| Printable.line(line) }.join("\n")
        say("#{Paint.new(Paint.wanted?(@err)).call(text, :dim)}\n")
      end

      # Prints a message to the user, not a result. Each argument is a line.
      def warn(*lines) = say("memprof: #{lines.map { |line| Printable.line(line) }.join("\n")}\n")

      # Says once that something has been renamed; only on a terminal, as scripts still work.
      def renamed(old, new)
        return if @renamed&.include?(old) || !@err.tty?

        (@renamed ||= []) << old
        warn("#{old} is now #{new}")
      rescue IOError
        nil # closed
      end

      # Shows progress on a line that the next call replaces; only on a terminal.
      def progress(message)
        return unless @err.tty? && ENV["TERM"] != "dumb"

        say("\r#{message && Printable.line(message).slice(0, width - 1)}\e[K")
      rescue IOError
        nil # closed
      end

      # Runs a block that shows progress, and clears its line even if interrupted.
      def busy
        yield
      ensure
        progress(nil)
      end

      private

      # 0 for rows, 1 for columns; nil without a screen.
      def dimension(index)
        return unless tty?

        require "io/console"
        number = @out.winsize[index]
        number if number.positive?
      rescue LoadError, SystemCallError
        nil
      end

      def say(text)
        @err.write(text)
        @err.flush
      rescue SystemCallError, IOError
        nil # closed
      end

      def output
        yield @out
        @out.flush
        true
      rescue Errno::EPIPE
        discard
        true
      rescue SystemCallError, IOError => e
        warn("cannot print the result: #{Output.reason(e)}")
        discard
        false
      end

      # At exit, Ruby would try to flush the buffer, and fail again.
      def discard
        @out.reopen(File::NULL, "w")
      rescue SystemCallError, IOError
        nil
      end
    end
  end
end
