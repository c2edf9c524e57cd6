# frozen_string_literal: true

require_relative "../loading"
require_relative "../lock"
require_relative "../native"
require_relative "../output"
require_relative "after_reply"
require_relative "combined"
require_relative "uncounted"
require_relative "journal_file"

module Memprof
  class Trace
    # The destination of reports: a file, to which each is appended as one line; standard output, where it is
    # indented; or a terminal, where it is a table for people.
    class Journal
      class << self
        def of(path_or_io)
          return new(nil) if path_or_io.nil?

          # A Pathname has `write`, too, and a File has a path: only an open file can be flushed.
          closed = path_or_io.respond_to?(:to_path) && !path_or_io.respond_to?(:flush)
          return file(closed ? path_or_io.to_path : path_or_io) if closed || path_or_io.is_a?(String)
          return new(path_or_io) if path_or_io.respond_to?(:write)

          raise ArgumentError, "path_or_io must be a path or an IO, not #{path_or_io.inspect}"
        end

        def file(path, **options) = new(JournalFile.new(path, **options))

        def json(record, pretty: false)
          Loading.json
          "#{pretty ? JSON.pretty_generate(whole(record)) : JSON.generate(record)}\n"
        end

        # Reports a problem of the operator in the middle of a request.
        def warn_once(message)
          Kernel.warn("memprof: #{Printable.line(message)}; said only once")
        rescue SystemCallError, IOError
          nil # stderr is closed as well
        end

        def text(record, seconds, io)
          Loading.load(File.expand_path("trace_text", __dir__))
          TraceText.new(whole(record), seconds).to_s(color: Paint.wanted?(io), width: width(io))
        end

        private

        def width(io)
          Loading.load("io/console")
          columns = io.winsize[1]
          columns.positive? ? columns : 80
        rescue LoadError, SystemCallError, NoMethodError
          80
        end

        # Also expands reports that the extension returns as one text.
        def whole(record)
          record.to_h.transform_values do |value|
            case value
            when Native::TraceReport, Combined, Uncounted then value.to_h
            else value
            end
          end
        end
      end

      def initialize(out)
        @file = out if out.is_a?(JournalFile)
        @io = out unless @file
        @lock = Lock.new
      end

      def path = @file&.path

      def full? = @file ? @file.full? : false

      # Appends a record of something that took so long. Warns once if the file is full.
      def write(record, seconds = nil) = add(record, seconds) || warn_full

      # Closes the file, unless it is shared, after the pending requests are appended.
      def close
        return unless @file

        AfterReply.finish
        @file.close
      end

      private

      def add(record, seconds)
        Native.quiet do
          io = @io || $stdout
          text = terminal?(io) ? self.class.text(record, seconds, io) : json(record, io)
          @lock.synchronize do
            next @file.append(text) if @file

            Output.write(io, text)
            true
          end
        end
      end

      def warn_full
        return if @warned

        @warned = true
        self.class.warn_once("#{path} is full: no more requests are traced")
      end

      def json(record, io)
        self.class.json(record, pretty: @file.nil? && (io.equal?($stdout) || io.equal?(STDOUT)))
      end

      def terminal?(io)
        @file.nil? && Paint.terminal?(io)
      rescue IOError
        false # closed: writing to it reports that
      end
    end
  end
end
