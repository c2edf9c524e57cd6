# frozen_string_literal: true

require_relative "heap_command"
require_relative "growth_rows"

module Memprof
  module CLI
    # `memprof diff`: compares dumps.
    class Diff < HeapCommand
      BY = %i[class type site file].freeze
      SORT = %i[size count retained new survived].freeze

      SUMMARY = "compares two or three dumps of a process"
      USAGE = "[OPTIONS] BEFORE AFTER [LATER]"
      DETAILS = <<~TEXT
        For dumps of one process: which objects are new, which were freed, and which old
        objects retain the new ones. New objects that are still in LATER have survived;
        leaks consist of these. Dumps of two processes, such as two versions of an
        application, can be compared by class, site and file.

        Examples:
          memprof diff before.memprof after.memprof
          memprof diff --by site before.memprof after.memprof later.memprof
          memprof diff --where 'change = "survived"' 1.memprof 2.memprof 3.memprof
      TEXT

      def call(arguments)
        files = expect_arguments(arguments, "BEFORE", "AFTER", "[LATER]")
        files.each { |file| check_readable(file) }
        diff = compare(files.map { |file| open_heap(file) })
        answer = answers(diff)
        status = present(answer) do |page|
          rows = GrowthRows.listing(answer[:rows][:rows],
            three: files.size == 3, strangers: strangers?(answer))
          output_format == :csv ? page.listing(rows) : tell(page, answer, rows)
        end
        next_steps(steps(files, answer))
        status
      end

      private

      def define_own_options(parser)
        one_of(parser, BY, "--by WHAT", BY.join(", "), :by)
        where(parser)
        one_of(parser, SORT, "--sort WHAT", SORT.join(", "), :sort)
        limit(parser, "the first N of each list", 20)
      end

      def answers(diff)
        limit = { limit: @options.fetch(:limit, 20) }
        where = @options.slice(:where)
        {
          memory: put(diff, :memory),
          totals: put(diff, :totals, **where),
          rows: put(diff, :rows, **where, **limit, **@options.slice(:by, :sort), changed: for_people?),
          owners: put(diff, :owners, **where, **limit)
        }
      end

      def tell(page, answer, rows)
        page.text(Wording.memory(answer[:memory])) if answer[:memory] && !strangers?(answer)
        page.heading(Wording.growth(answer[:totals]))
        together = !strangers?(answer)
        GrowthRows.sentences(answer[:totals]).each { |sentence| page.text(sentence) } if together
        page.listing(rows, heading: "By #{@options.fetch(:by, :class)}")
        more(page, answer[:rows][:more], "row")
        unchanged(page, answer[:rows][:unchanged])
        owners(page, answer[:owners]) if together
        warn(page, answer.values_at(:totals, :rows, :owners).flat_map { |part| part[:warnings] })
      end

      # Rows without change only matter to programs.
      def for_people? = output_format == :text

      def unchanged(page, count)
        return unless count.positive?

        page.text("#{Cell.plural(count, "row")} without change not shown.")
      end

      # Nothing of one is in the other: dumps of two processes.
      def strangers?(answer) = answer[:totals][:kept][:count].zero?

      def owners(page, answer)
        page.listing(GrowthRows.owners(answer[:owners]), heading: "Old objects that retain new ones")
        more(page, answer[:more], "object")
      end

      def steps(files, answer)
        owner = answer[:owners][:owners].find { |holder| holder[:address] }
        return [] if owner.nil? || strangers?(answer)

        [
          [["show", files[1], owner[:address]], "the object that retains most new ones"],
          [["tree", files[1], owner[:address]], "what it retains"]
        ]
      end
    end
  end
end
