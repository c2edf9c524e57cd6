# frozen_string_literal: true

require_relative "cell"

module Memprof
  # Puts a heap's answers into words, for the command and the pages.
  module Wording
    STAGES = {
      opening: "opening", reading: "reading", linking: "following references",
      computing: "computing retained sizes", writing: "writing the index"
    }.freeze

    # Advice for the largest growth outside of objects.
    ADVICE = {
      "malloc" => "record it with Memprof::Malloc (docs/malloc.md)",
      "malloc_free" => "fragmentation; try MALLOC_ARENA_MAX=2, or jemalloc",
      "slots_free" => "Ruby gives a page back when all its slots are free; see `memprof slots`"
    }.freeze
    private_constant :ADVICE

    class << self
      # A remark on an answer, as a note below it.
      def note(remark)
        "Note: #{remark.delete_suffix(".")}."
      end

      # Joins parts, some of which are places in files, into text.
      def phrase(parts) = parts.map { |part| part.is_a?(Hash) ? Cell.place(part) : part }.join

      def holder(holder)
        return unless holder

        label = holder[:label].to_s
        label.match?(/\A[@\[]/) || label.empty? ? "#{holder[:class]}#{label}" : "#{holder[:class]} #{label}"
      end

      def growth(totals)
        change = totals[:change]
        return "No growth: #{sum(totals[:after])}" if change.values_at(:size, :count).all?(&:zero?)

        "#{Cell.text(change[:size], :growth)} and #{Cell.text(change[:count], :more)} objects: " \
          "from #{sum(totals[:before])} to #{sum(totals[:after])}"
      end

      # A change of a size: `84.1 KiB larger`.
      def larger(bytes)
        return "as large as before" if bytes.zero?

        "#{Units.bytes(bytes.abs)} #{bytes.positive? ? "larger" : "smaller"}"
      end

      # Whether two dumps are unrelated: dumps of two processes share, at most, a few objects of one class at
      # the same address by chance.
      def unrelated?(totals) = totals[:kept][:count] * 1000 <= totals[:before][:count]

      # How much a process grew, and what to do about it.
      def memory(growth)
        change, objects, cause = growth.values_at(:change, :objects, :cause)
        from_to = "from #{Units.bytes(growth[:before])} to #{Units.bytes(growth[:after])}"
        return "RSS stayed at #{Units.bytes(growth[:after])}." if change.zero?
        return "RSS went #{from_to}." if change.negative?

        sentence = "RSS grew by #{Units.bytes(change)} (#{from_to}), #{share(objects, growth[:iseqs])}"
        cause ? "#{sentence}. #{cause(cause)}" : "#{sentence}."
      end

      def growth_by_dump(sizes)
        "Growth by dump: #{sizes.map { |size| Cell.text(size, :growth) }.join(", ")}."
      end

      def sum(sum) = Units.objects(sum[:count], sum[:size])

      private

      def share(objects, iseqs)
        return "#{Units.bytes(-objects)} less in Ruby objects" if objects.negative?

        # Endlessly generated code deserves its own mention.
        code = iseqs * 2 > objects && iseqs > 1 << 20
        "#{Units.bytes(objects)} of it in Ruby objects" \
          "#{": #{Units.bytes(iseqs)} are instruction sequences, see `Memprof.iseqs`" if code}"
      end

      def cause(cause)
        advice = ADVICE[cause[:key]]
        "Another #{Units.bytes(cause[:change])}: #{cause[:name]}#{"; #{advice}" if advice}."
      end
    end
  end
end
