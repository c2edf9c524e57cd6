# frozen_string_literal: true

require_relative "../native"
require_relative "../output"
require_relative "after_reply"
require_relative "combined"

module Memprof
  class Trace
    # Where reports go: a file, to which each is added as one line, or a screen, where it is indented.
    #
    # @api private
    class Journal
      MODE = File::WRONLY | File::CREAT | File::APPEND | File::BINARY
      private_constant :MODE

      class << self
        # @param path_or_io [String, #to_path, #write, nil] nil for standard output
        # @return [Journal] to be closed
        # @raise [Memprof::Error] if the file can't be opened
        # @raise [ArgumentError] if it is neither a path nor an IO
        def of(path_or_io)
          return new(nil) if path_or_io.nil?

          # A Pathname can `write` too, and a File has a path: what can be flushed is open already.
          closed = path_or_io.respond_to?(:to_path) && !path_or_io.respond_to?(:flush)
          return file(closed ? path_or_io.to_path : path_or_io) if closed || path_or_io.is_a?(String)
          return new(path_or_io) if path_or_io.respond_to?(:write)

          raise ArgumentError, "a path or an IO is needed, not #{path_or_io.inspect}"
        end

        # Opens a file to add to; it is made with mode 0600 if it is not there.
        #
        # @param path [String]
        # @param own [Boolean] whether to refuse a link, and a file of somebody else: in a directory for all
        #   anybody may put one under a name that can be foretold
        # @return [Journal]
        # @raise [Memprof::Error] if it can't be opened
        # @raise [ArgumentError] if it is no path
        def file(path, own: false)
          Output.file_path(path) # complains about directories and the like
          io = File.open(path, MODE | (own ? File::NOFOLLOW : 0), 0o600)
          io.sync = true
          if own && !io.stat.owned?
            io.close
            raise Error, "can't write #{path}: it belongs to somebody else"
          end
          new(io, path: path)
        rescue SystemCallError => e
          raise Output.failure(path, e)
        end

        # @param record [Hash, Native::TraceReport, Combined] a report, or a request with one, made of what
        #   {Numbers.plain} gives
        # @param pretty [Boolean] for people, or as one line
        # @return [String] JSON with a line feed
        def json(record, pretty: false)
          # Not before: a program under Bundler must not find another json loaded than that of its lockfile.
          # And not for each request: RubyGems looks into it each time.
          @json ||= require("json") || true
          "#{pretty ? JSON.pretty_generate(whole(record)) : JSON.generate(record)}\n"
        end

        private

        # What the extension gives as one text is spread out, too.
        def whole(record)
          record.to_h.transform_values do |value|
            case value
            when Native::TraceReport, Combined then value.to_h
            else value
            end
          end
        end
      end

      # @return [String, nil] of the file that this opened
      attr_reader :path

      # @param io [#write, nil] nil for what $stdout is when a report comes
      # @param path [String, nil]
      def initialize(io, path: nil)
        @io = io
        @path = path
        @lock = Mutex.new
      end

      # @param record [Hash]
      # @return [void]
      # @raise [Memprof::Error] if it can't be written; what was there before stays
      def write(record)
        Native.quiet do
          io = @io || $stdout
          text = self.class.json(record, pretty: screen?(io))
          @lock.synchronize { @path ? append(text) : Output.write(io, text) }
        end
      end

      # Closes the file, if it is this one's own, behind the requests that wait to be added to it.
      #
      # @return [void]
      def close
        return unless @path

        AfterReply.finish
        @io.close
      end

      private

      def screen?(io)
        return false if @path

        io.equal?($stdout) || io.equal?(STDOUT) || (io.respond_to?(:tty?) && io.tty?)
      end

      # All at once: other processes may add to the same file.
      def append(text)
        rest = text
        rest = rest.byteslice(@io.syswrite(rest)..) until rest.empty?
      rescue SystemCallError, IOError => e
        cut(text.bytesize - rest.bytesize) if rest.bytesize < text.bytesize
        raise Output.failure(@path, e) if e.is_a?(SystemCallError)

        raise Error, "can't write #{@path}: #{e.message}"
      end

      # Takes back half a line, unless somebody has written behind it.
      def cut(written)
        size = @io.stat.size
        @io.truncate(size - written) if @io.stat.file? && @io.pos == size
      rescue SystemCallError, IOError
        nil # it stays; readers pass over a line that is none
      end
    end
  end
end
