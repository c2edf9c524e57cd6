# frozen_string_literal: true

require_relative "../paint"

module Memprof
  module CLI
    # Where the commands print: results to stdout, all else to stderr.
    #
    # @api private
    class Terminal
      # @param out [IO]
      # @param err [IO]
      def initialize(out: $stdout, err: $stderr)
        @out = out
        @err = err
      end

      # @return [Boolean] whether results go to a person's screen
      def tty?
        @out.tty?
      rescue IOError
        false
      end

      # @return [Integer] columns of the screen; 80 where there is none
      def width
        return 80 unless tty?

        require "io/console"
        columns = @out.winsize[1]
        columns.positive? ? columns : 80
      rescue LoadError, SystemCallError
        80
      end

      # @return [Integer, nil] columns that results may take; nil where there is no screen
      def columns
        tty? ? width : nil
      end

      # @return [Integer] lines of the screen; 24 where there is none
      def height
        require "io/console"
        rows = tty? ? @out.winsize[0] : 0
        rows.positive? ? rows : 24
      rescue LoadError, SystemCallError
        24
      end

      # @param choice [Symbol] :always, :never, or :auto, which asks the screen and NO_COLOR
      #   (https://no-color.org)
      # @return [Boolean] whether to print results in colour
      def color?(choice = :auto)
        choice == :auto ? Paint.wanted?(@out) : choice == :always
      rescue IOError
        false # closed
      end

      # @param text [String]
      # @return [String] the text, bold where colour is wanted
      def bold(text)
        Paint.new(color?).call(text, :bold)
      end

      # Prints a result. A reader that went away (`memprof ... | head -1`) is no error.
      #
      # @param text [String]
      # @return [Boolean] whether it was printed
      def print(text)
        output { |out| out.write(text) }
      end

      # Prints a line, like #print.
      #
      # @param text [String]
      # @return [Boolean] whether it was printed
      def puts(text)
        print("#{text}\n")
      end

      # Prints a file, like #print.
      #
      # @param path [String, IO]
      # @return [Boolean] whether it was printed
      def print_file(path)
        output { |out| IO.copy_stream(path, out) }
      end

      # Prints a long result: on a screen that it does not fit on through a pager.
      #
      # @param text [String]
      # @return [Boolean] whether it was printed
      def page(text)
        require_relative "pager"
        tty? && Pager.show(text, height) ? true : print(text)
      end

      # Says what to do next: no result, so not where results go.
      #
      # @param text [String] some lines
      # @return [void]
      def hint(text)
        @err.write(Paint.new(Paint.wanted?(@err)).call(text.chomp, :dim), "\n")
      rescue SystemCallError, IOError
        nil # closed
      end

      # Tells the user something that is no result.
      #
      # @param message [String]
      # @return [void]
      def warn(message)
        @err.write("memprof: #{message}\n")
      rescue SystemCallError, IOError
        nil # closed: there is nobody to tell
      end

      # Shows how far a long work is, on a line that the next call replaces. Where nobody looks on, nothing.
      #
      # @param message [String, nil] nil takes the line away
      # @return [void]
      def progress(message)
        return unless watched?

        @err.write("\r#{message&.slice(0, width - 1)}\e[K")
        @err.flush
      rescue SystemCallError, IOError
        nil # closed
      end

      # @return [Boolean] whether somebody sees stderr
      def watched?
        @err.tty? && ENV["TERM"] != "dumb"
      rescue IOError
        false # closed
      end

      private

      def output
        yield @out
        @out.flush
        true
      rescue Errno::EPIPE
        discard
        true
      rescue SystemCallError, IOError => e
        warn("cannot print the result: #{e.message}")
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
