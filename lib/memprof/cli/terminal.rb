# frozen_string_literal: true

module Memprof
  module CLI
    # Where the commands print: results to stdout, all else to stderr. What goes to stderr holds names that
    # others may have given (of files, processes, classes), and nothing of them acts on the terminal.
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

      # Prints a result. A closed pipe (`memprof ... | head -1`) is no error.
      def print(text) = output { |out| out.write(text) }

      def puts(text) = print("#{text}\n")

      def print_file(path) = output { |out| IO.copy_stream(path, out) }

      # Prints a long result: on a screen that it does not fit on through a pager.
      def page(text) = tty? && Pager.show(text, height) ? true : print(text)

      # Suggests what to do next, on stderr.
      def hint(text)
        text = text.chomp.split("\n").map { |line| Printable.line(line) }.join("\n")
        say("#{Paint.new(Paint.wanted?(@err)).call(text, :dim)}\n")
      end

      # Prints a message to the user that is no result. Each argument is a line.
      def warn(*lines) = say("memprof: #{lines.map { |line| Printable.line(line) }.join("\n")}\n")

      # Says once that something has another name now; only on a terminal, as scripts work as they did.
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

      # Runs a block that shows progress; even interrupted, it leaves no line behind.
      def busy
        yield
      ensure
        progress(nil)
      end

      private

      # Rows are 0, columns 1; nil without a screen.
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

      # Ruby would try to write what is left in the buffer when it ends, and fail again.
      def discard
        @out.reopen(File::NULL, "w")
      rescue SystemCallError, IOError
        nil
      end
    end
  end
end
