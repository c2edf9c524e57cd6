# frozen_string_literal: true

require "tmpdir"
require_relative "../output"

module Memprof
  module Dump
    # A dump for people: one object after another, indented. Data about the dump itself, such as its first
    # line, is left out.
    module Pretty
      ABOUT_THE_DUMP = %w[header footer].freeze
      ROOTS = "_ROOTS_"
      private_constant :ABOUT_THE_DUMP, :ROOTS

      class << self
        def copy(file, io)
          file.set_encoding(Encoding::UTF_8)
          is_array = file.getc == "["
          file.rewind
          is_array ? array(file, io) : lines(file, io)
        end

        private

        def lines(file, io)
          file.each_line do |line|
            record = JSON.parse(line)
            io.write("#{JSON.pretty_generate(record)}\n") unless ABOUT_THE_DUMP.include?(record["type"])
          end
        end

        # The dump is one array: each line starts with a bracket or a comma, and the last one is a bracket.
        def array(file, io)
          separator = "["
          file.each_line do |line|
            next if line.start_with?("]")

            record = JSON.parse(line[1..])
            next if record["id"] == ROOTS

            io.write("#{separator}\n#{JSON.pretty_generate(record).gsub(/^/, "  ")}")
            separator = ","
          end
          io.write(separator == "[" ? "[]\n" : "\n]\n")
        end
      end
    end

    # A temporary file for a dump to an IO. The dump goes to an unnamed file first: the extension holds the
    # GVL while it writes, so a reader in the same process could never empty a pipe.
    module Spool
      READ_WRITE = File::RDWR | File::BINARY
      private_constant :READ_WRITE

      class << self
        # Yields a file, and copies its contents to `target`. If the block fails, the target is not touched.
        def to(target, pretty: false)
          nameless do |file|
            value = yield(file)
            file.rewind
            Output.open(target) { |io| pretty ? Pretty.copy(file, io) : copy(file, io) }
            value
          end
        end

        # Yields a new file that no longer has a name.
        def nameless
          # Not a return value: the thread may be killed before it is assigned.
          made = []
          opened = false
          path = File.join(directory, ".memprof-#{Process.pid}-#{Random.urandom(6).unpack1("H*")}.tmp")
          begin
            Native.create_nameless(path, made)
          rescue SystemCallError => e
            raise Output.failure(path, e)
          end
          opened = true # the GC closes it, if nothing else does
          file = File.for_fd(made.first, READ_WRITE)
          yield(file)
        ensure
          file = File.for_fd(made.first, READ_WRITE) if made&.any? && !opened
          file&.close
        end

        # The directory for temporary files.
        def directory
          Loading.load("tmpdir") unless defined?(Dir.tmpdir) # as for the header
          # Rescues every exception raised in it.
          Thread.handle_interrupt(StandardError => :never) { Dir.tmpdir }
        rescue ArgumentError => e
          raise Error,
            "cannot create a temporary file: #{e.message}; set TMPDIR to a writable directory"
        end

        private

        def copy(file, io)
          io.flush if io.respond_to?(:flush) # earlier output comes first
          IO.copy_stream(file, io)
        end
      end
    end
  end
end
