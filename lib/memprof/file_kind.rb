# frozen_string_literal: true

require_relative "malloc"
require_relative "native"

module Memprof
  # Detects the kind of a file by its first bytes, and which verb of the command reads it.
  module FileKind
    HEAD = 262_144 # bytes: a traced request is a line
    # Beginnings of texts of each kind; a heap dump may also be compressed.
    BEGINNINGS = {
      core: /\A\x7FELF/,
      heap: /\A(?:memprof\uFFFD|\s*(?:\[\s*\{\s*"id"|\{\s*"(?:_id|address)"|\{\s*"type"\s*:\s*"ROOT"))/,
      tracked: /\A\s*\{\s*"format"\s*:\s*"memprof-report"/,
      boot: /\A\s*\{\s*"format"\s*:\s*"memprof-boot"/
    }.freeze
    STATS = /\A\s*\d+ .+:\d+:.+$/
    STACKS = /\A[^\s{\[].*;.* \d+$/
    # The name of each kind, and the verb that shows it.
    SHOWN = {
      heap: ["a heap dump", "stats"], core: ["a core file", "core"], malloc: ["a malloc recording", "malloc"],
      trace: ["a log of traced requests", "trace"], tracked: ["a report of allocations", "web"],
      boot: ["a report of `memprof boot`", "web"]
    }.freeze
    private_constant :HEAD, :BEGINNINGS, :STATS, :STACKS, :SHOWN

    class << self
      # A key of SHOWN; nil for an unknown file. A pipe cannot be inspected.
      def of(path)
        return unless File.file?(path)
        return :malloc if Malloc::Recording.file?(path)

        head = (File.binread(path, HEAD) || +"").force_encoding(Encoding::UTF_8).scrub
        of_text(head)
      rescue SystemCallError
        nil
      end

      # "a heap dump: `memprof stats FILE`", with the file as a shell reads it
      def sentence(kind, file)
        name, verb = SHOWN.fetch(kind)
        "#{name}: `memprof #{verb} #{file}`"
      end

      # "a heap dump"
      def name(kind) = SHOWN.fetch(kind).first

      # The names of all kinds.
      def names = SHOWN.values.map(&:first)

      # The verb whose answer people usually want first.
      def first_verb(kind) = kind == :heap ? "leaks" : SHOWN.fetch(kind).last

      def first_verbs = SHOWN.keys.map { |kind| first_verb(kind) }.uniq

      private

      def of_text(head)
        kind, = BEGINNINGS.find { |_, beginning| head.match?(beginning) }
        return kind if kind

        first = head.each_line.find { |line| !line.strip.empty? }.to_s
        return :trace if request?(first)

        :tracked if first.match?(STATS) || first.match?(STACKS)
      end

      # The first request may be longer than the part that was read.
      def request?(line)
        Native.request?(line) || (line.bytesize >= HEAD && line.start_with?('{"start":'))
      end
    end
  end
end
