# frozen_string_literal: true

require "fileutils"
require "stringio"
require "tmpdir"
require_relative "../cli"

module Memprof
  module MCP
    # Copies of dumps without the contents of strings. Answers are computed from these, so that no question,
    # however it is put, brings out a value. The latest ones remain in a directory until the server ends.
    class Hidden
      MOST = 6
      NAME = "heap.memprof"
      COUNT = /\A[\d,]+ objects?, / # what the conversion says in any case
      private_constant :MOST, :NAME, :COUNT

      def initialize(directory)
        @directory = directory
        @copies = {}
      end

      # The path of the copy, and what was wrong with the dump.
      def copy(path)
        @copies[key(path)] ||= make(path).tap { forget if @copies.size >= MOST }
      end

      # A text about a copy, as one about the dump.
      def rename(text, path) = text.gsub(%r{#{Regexp.escape(@directory)}/copy[\w-]+/#{NAME}}, path)

      private

      def key(path) = File.stat(path).then { |stat| [File.realpath(path), stat.ino, stat.size, stat.mtime] }

      def make(path)
        copy = File.join(Dir.mktmpdir("copy", @directory), NAME)
        errors = StringIO.new
        command = CLI.command("convert", CLI::Terminal.new(out: StringIO.new, err: errors))
        command.extend(Captured).start(["--contents=none", "--", path, copy])
        said = errors.string.lines(chomp: true).map { |line| line.delete_prefix("memprof: ") }
        [copy, said.grep_v(COUNT)]
      end

      def forget
        _, (copy,) = @copies.shift
        FileUtils.rm_rf(File.dirname(copy))
      end
    end
  end
end
