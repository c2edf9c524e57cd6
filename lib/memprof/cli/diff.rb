# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof diff`: compares dumps, or reports.
    class Diff < HeapCommand
      include ComparisonOptions

      BY = %i[class type site file].freeze
      SORT = %i[size count retained new survived].freeze
      # Options only for dumps, and only for reports.
      DUMPS_ONLY = %i[where ignore_stack_roots no_index].freeze
      REPORTS_ONLY = %i[internal max_increase].freeze
      private_constant :DUMPS_ONLY, :REPORTS_ONLY

      SUMMARY = "compares two or more dumps of a process, or two reports"
      USAGE = "[OPTIONS] BEFORE AFTER [LATER...]"
      DETAILS = <<~TEXT
        For dumps of one process, diff shows which objects are new, which were freed,
        and which old objects retain the new ones. New objects that are still in LATER
        have survived; leaks are among them. Dumps of two processes, such as two
        versions of an application, can be compared by class, site and file.

        With more than three dumps, the last one is LATER and the one before it AFTER.
        "Over the dumps" draws the growth since BEFORE in each of them.

        For two JSON reports, written by `memprof run -o base.json` before and after a
        change to the code, diff shows which lines allocate or retain more or less. It
        recognizes a line that moved by its text, or else takes the nearest line of the
        method that allocates the same class; the column Line says so. With
        --max-increase it exits with 1 if a total increased by more. `memprof check`
        also runs the command.

        Examples:
          memprof diff base.json head.json
          memprof diff --format markdown base.json head.json
          memprof diff before.memprof after.memprof
          memprof diff --by site before.memprof after.memprof later.memprof
          memprof diff --where 'change = "survived"' 1.memprof 2.memprof 3.memprof
          memprof diff --by site 1.memprof 2.memprof 3.memprof 4.memprof
      TEXT

      def call(arguments)
        expect_arguments(arguments.first(2), "BEFORE", "AFTER")
        reports, dumps = arguments.partition { |file| Memprof::Check::Comparison.report?(file) }
        return compare_dumps(arguments) if reports.empty?
        return compare_reports(arguments) if dumps.empty?

        dumps.each { |file| check_readable(file) }
        raise UsageError,
          "#{reports.first} is a report and #{dumps.first} is not; compare two reports or two dumps"
      end

      private

      def compare_reports(files)
        raise UsageError, "expected two reports, not #{files.size}" unless files.size == 2

        refuse_options(DUMPS_ONLY, "is only for dumps")
        choose(:by, Comparing::BY)
        choose(:sort, Memprof::Check::Comparison::MEASURES)
        load_library
        limits = Memprof::Check::Limits.new(max_increase: @options[:max_increase])
        conclude(compared(files.first(1), files.last(1)), limits)
      end

      # Valid values depend on what is compared.
      def choose(option, words)
        value = @options[option]
        return if value.nil? || words.include?(value)

        invalid("--#{option}", value, "one of: #{words.join(", ")}")
      end

      def compare_dumps(arguments)
        refuse_options(REPORTS_ONLY, "is only for reports")
        choose(:by, BY)
        choose(:sort, SORT)
        choose(:format, Flags::FORMATS)
        arguments.each { |file| check_readable(file) }
        before, after, *later = arguments
        *between, after, later = [after, *later] if later.size > 1
        heaps = [before, after, *later].map { |file| open_heap(file) }
        diff = compare(heaps)
        answer = answers(diff)
        series = over(heaps, between, diff, answer) if between
        present(answer, steps(after, answer)) do |page|
          rows = GrowthRows.listing(answer[:rows][:rows],
            three: arguments.size > 2, unrelated: unrelated?(answer))
          output_format == :csv ? page.listing(rows) : render(page, answer, rows, series)
        end
      end

      # Adds to the rows each dump's growth since the first. The dumps between are opened one after the other,
      # as each takes memory.
      def over(heaps, between, diff, answer)
        before, _, later = heaps
        series = Memprof::Heap::Series.new(**@options.slice(:by, :where))
        between.each { |file| add(series, compare([before, open_heap(file), later])) }
        add(series, diff)
        # Compared with itself, the last dump still has all its objects.
        add(series, compare([before, later, later]))
        answer[:rows][:rows] = series.complete(answer[:rows][:rows])
        series
      end

      def add(series, diff) = busy { series.add(diff) }

      def answers(diff)
        limit = { limit: option(:limit) }
        where = @options.slice(:where)
        # Rows without change only matter to programs.
        changed = output_format == :text
        {
          memory: ask(diff, :memory),
          totals: ask(diff, :totals, **where),
          rows: ask(diff, :rows, **where, **limit, **@options.slice(:by, :sort), changed: changed),
          owners: ask(diff, :owners, **where, **limit)
        }
      end

      def render(page, answer, rows, series)
        page.text(Wording.memory(answer[:memory])) if answer[:memory] && !unrelated?(answer)
        page.heading(Wording.growth(answer[:totals]))
        page.text(Wording.growth_by_dump(series.sizes)) if series
        together = !unrelated?(answer)
        GrowthRows.sentences(answer[:totals]).each { |sentence| page.text(sentence) } if together
        page.listing(rows, heading: "By #{@options.fetch(:by, :class)}")
        more(page, answer[:rows][:more], "row")
        unchanged = answer[:rows][:unchanged]
        page.text("#{Units.plural(unchanged, "unchanged row")} not shown.") if unchanged.positive?
        owners(page, answer[:owners]) if together
        warn(page, answer.values_at(:totals, :rows, :owners).flat_map { |part| part[:warnings] })
      end

      def unrelated?(answer) = Wording.unrelated?(answer[:totals])

      def owners(page, answer)
        page.listing(GrowthRows.owners(answer[:owners]), heading: "Old objects that retain new ones")
        more(page, answer[:more], "object")
      end

      def steps(after, answer)
        owner = answer[:owners][:owners].find { |holder| holder[:address] }
        return [] if owner.nil? || unrelated?(answer)

        [
          [["show", after, owner[:address]], "the object that retains the most new ones"],
          [["tree", after, owner[:address]], "what it retains"]
        ]
      end
    end
  end
end
