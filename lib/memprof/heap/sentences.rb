# frozen_string_literal: true

require_relative "../paths"
require_relative "../units"

module Memprof
  class Heap
    # Puts the fields of an answer into sentences: the extension has none.
    #
    # @api private
    module Sentences
      NO_LINES = "Allocation lines are unknown: "
      NO_TEXTS = "Contents of strings are unknown: dump with values: :full or :truncate."

      # What limits an answer. Frozen in full, as other Ractors ask, too.
      REMARKS = {
        no_objects: "The dump has no objects.",
        ends_early: "The dump is truncated: objects are missing, and others look like garbage because " \
          "their referrers are missing.",
        skipped: "Skipped %{number} that cannot be read (the first: %{unit} %{first}).",
        missing: "References to objects that the dump does not have: %{count}.",
        rootless: "The dump has no roots, so retained sizes and paths are unknown: dump the whole heap, " \
          "without since:.",
        unretained: "a dump lacks roots or their references (it was written with since:, or has tracked " \
          "objects only), so what retains objects is unknown",
        garbage_counted: "The dump has no roots, so garbage is counted, too.",
        moved: "The GC moved objects while the dump was written: some references may be wrong.",
        no_lines: "#{NO_LINES}%{tracking} before the objects are allocated, and dump again.",
        few_lines: "Allocation lines are known for only %{percent} %% of the objects: track earlier.",
        lines_unknown: "Allocation lines of these objects are unknown: they were allocated before tracking " \
          "began, or by C code.",
        no_texts: NO_TEXTS,
        no_contents: "The dump does not contain the contents of strings.",
        partial_texts: "Not compared, because the dump lacks part of their text: %{number}.",
        hashed_texts: "The dump has hashes instead of texts: equal texts are found, but not shown.",
        unknown_facts: "Unknown for this Ruby: %{facts}.",
        own_objects: "%{number} of memprof itself (%{size}) not counted.",
        no_generations: "Neither dump has generations: an object in the slot of a freed one of the same " \
          "class counts as survived. To distinguish them, record with Memprof.start before the dumps.",
        tracking_ended: "The later dump has no generations: tracking ended in between, and all tracked " \
          "objects count as gone.",
        two_processes: "The dumps are from two processes, whose addresses mean different objects.",
        blocks_differ: "Only some of the dumps have the blocks of malloc (--blocks). There objects count " \
          "without their contents, and each block counts as new or gone.",
        images_differ: "Only some of the dumps are read from the memory of a process. There sizes and " \
          "references are found by other means: small growth may be none.",
        compacted: "The heap was compacted in between: an object that moved counts as gone and as new.",
        wrong_order: "The dumps are in the wrong order: the first was written after the second.",
        truncated: "The dump is truncated: what its missing part retains is not counted.",
        one_truncated: "The %{dump} dump is truncated: objects of its missing part count as absent.",
        differs: "%{setting} differs: %{before} before, %{after} after.",
        sampled: "Objects were sampled: small changes are noise.",
        incomplete_report: "The report %{report} is incomplete."
      }.each_value(&:freeze).freeze

      # Why objects are retained.
      MECHANISMS = {
        ended: "they have ended, and are still referenced",
        at_exit: "at_exit retains its block, and what it captured, until the process ends",
        finalizer: "a finalizer retains its block, and what it captured, as long as its object lives",
        symbols: "symbols that are never freed, as C code or a method name uses them",
        receiver: "an exception retains the object whose method raised it (receiver)",
        shared: "a part of a longer %{class} retains all of it (shared)",
        binding: "a Binding retains the local variables of each evaluation",
        singleton_methods: "a singleton class retains each method that its object was given",
        singleton_modules: "a singleton class retains each module that its object was extended with",
        singleton_classes: "each has a singleton class of its own, with its methods",
        ancestors: "a class retains each module that was prepended to it or included in it",
        block: "the block written at %{place} captures %{captured}",
        thread_local: "the thread lives on, and its local [%{key}] is not reset",
        thread_variable: "the thread lives on, and its variable %{name} is not reset",
        thread_field: "the thread lives on, and its %{name} is not reset",
        key: "each is a key of a Hash that removes none",
        capacity: "a Hash retains the capacity for the most entries that it ever had, and the largest has " \
          "%{entries} entries",
        appended: "it is appended to, and never cleared",
        added: "methods, constants or variables are added to it"
      }.freeze

      WORDS = {
        tracking: { "off" => "memprof/signal is loaded, but tracking is off; call Memprof.start",
                    "unknown" => "call Memprof.start (or require \"memprof/signal\")" },
        setting: { "ruby" => "The Ruby", "sample" => "--sample", "command" => "The command" },
        captured: { nil => "the one before it" }
      }.each_value(&:freeze).freeze
      FRAGMENTED = 10 # percent of the pages
      NOUNS = { "own_objects" => "object", "partial_texts" => "string" }.freeze
      private_constant :REMARKS, :MECHANISMS, :WORDS, :NOUNS, :FRAGMENTED

      class << self
        # Replaces the fields of remarks and mechanisms in an answer.
        def complete(answer)
          return answer unless answer.is_a?(Hash)

          %i[remarks warnings].each { |name| answer[name]&.map! { |fields| remark(fields) } }
          answer[:unknown] = remark(answer[:unknown]) if answer[:unknown].is_a?(Hash)
          answer[:findings]&.each { |finding| finding[:why] &&= mechanism(finding[:why]) }
          answer[:sentence] = fragmentation(answer) if answer.key?(:returnable)
          answer
        end

        def remark(fields)
          name = fields.fetch(:remark)
          fill(REMARKS.fetch(name.to_sym), fields, NOUNS.fetch(name, fields[:unit]))
        end

        # Why no root reaches an object.
        def unreachable(object)
          case object[:leaked]
          when nil then "Unreachable from the roots: garbage not collected yet."
          when true then "Leaked by C code: nothing reachable references it, and no garbage of Ruby either."
          else
            free = object[:facts].to_h.key?("state")
            free ? "A free block of malloc." : "Only garbage of Ruby references it, and may free it."
          end
        end

        private

        def mechanism(fields)
          name = fields.fetch(:mechanism).to_sym
          name == :running ? running(fields) : fill(MECHANISMS.fetch(name), fields)
        end

        def fill(template, fields, noun = nil)
          texts = fields.to_h { |name, value| [name, text(name, value)] }
          texts[:number] = Units.plural(fields[:count], noun) if noun
          format(template, texts)
        end

        def text(name, value)
          case name
          when :count, :entries then Units.count(value)
          when :size then Units.bytes(value)
          when :place then Paths.short(value)
          when :percent then format("%.1f", value)
          when :facts then value.join(", ")
          else WORDS.dig(name, value) || value
          end
        end

        # "threads that do not end; 12 are at worker.rb:5:in `pop'"
        def running(fields)
          unended, frame, count = fields.values_at(:unended, :frame, :count)
          there = "#{count == 1 ? "one is" : "#{Units.count(count)} are"} at #{Paths.short(frame)}" if frame
          [("#{unended} that do not end" if unended), there].compact.join("; ")
        end

        def fragmentation(answer)
          fill = "#{answer[:fill].round} % of the slots in #{Units.plural(answer[:pages], "page")} " \
            "(#{Units.bytes(answer[:size])}) are used"
          return "#{fill}: the heap is not fragmented." if answer[:percent] < FRAGMENTED

          pages, objects = %i[nearly_empty_pages nearly_empty_objects].map do |name|
            answer[:rows].sum { |row| row[name] }
          end
          sparse = " Nearly empty: #{Units.plural(pages, "page")} with #{Units.plural(objects, "object")}."
          "#{fill}.#{sparse if pages.positive?} Compaction (GC.compact) could return " \
            "#{Units.bytes(answer[:returnable])} (#{answer[:percent].round} %) to the system."
        end
      end
    end
  end
end
