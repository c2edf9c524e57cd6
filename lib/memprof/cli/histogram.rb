# frozen_string_literal: true

require_relative "../columns"

module Memprof
  module CLI
    # `memprof histogram`: objects in groups.
    class Histogram < HeapCommand
      BY = Columns::HEAP_GROUPS.keys.freeze

      SUMMARY = "groups the objects of a dump by class, line, age, ..."
      USAGE = "[OPTIONS] FILE"
      DETAILS = <<~TEXT
        Retained size adds up the retained sizes of the group's objects and counts each
        byte once: if one object of the group retains another, only the outer one
        counts. --exact adds memory freed only when several of them go together.

        WHAT is one of #{BY.first(8).join(", ")},
        #{BY.drop(8).join(", ")}.
        Namespaces and superclasses are shown as a tree.

        Examples:
          memprof histogram heap.memprof
          memprof histogram --by line --where 'class = Proc' heap.memprof
          memprof histogram --by class --then line heap.memprof
          memprof histogram --by application --where 'gem != other' heap.memprof
          memprof histogram --by generation --sort name heap.memprof
      TEXT

      def call(arguments)
        file, = expect_arguments(arguments, "FILE")
        heap = open_heap(file)
        answer = ask(heap, :histogram,
          **chosen(:by, :then, :where, :sort, :limit, :then_limit, :exact, :depth))
        present(answer, steps(file, answer)) do |page|
          page.heading(heading(answer))
          page.listing(listing(answer))
          more(page, answer[:more], "group") unless answer[:rows].empty?
          garbage(page, heap, answer[:total])
        end
      end

      private

      def heading(answer)
        total = answer[:total]
        objects = Units.plural(total[:count], @options[:where] ? "matching object" : "object")
        retained = ", retaining #{Units.bytes(total[:retained])}" if @options[:where] && total[:retained]
        "#{objects}, #{Units.bytes(total[:size])}#{retained}"
      end

      def garbage(page, heap, total)
        return unless total[:unreachable_count].to_i.positive?

        count, size = total.values_at(:unreachable_count, :unreachable_size)
        leaked = ", or leaked" unless heap.where("type = BLOCK").empty?
        page.paragraph("Unreachable from the roots: #{Units.objects(count, size)}, " \
                       "garbage not collected yet#{leaked}.")
      end

      def steps(file, answer)
        row = answer[:rows].find { |candidate| candidate[:key] && candidate[:where] }
        return [] unless row

        filter = [row[:where], @options[:where] && "(#{@options[:where]})"].compact.join(" and ")
        [
          [["query", file, filter], "the objects of #{Printable.fit(key(row, 0), 30)}"],
          [["path", file, "--where", filter], "what retains them"]
        ]
      end

      def listing(answer)
        share = answer[:sort].to_s == "retained" ? :percent : :shallow_percent
        listing = Listing.new.columns(:retained).columns(share, as: :percent).columns(:count, :size)
        if output_format == :csv
          listing.columns(:group, as: :key).columns(:within, as: :then)
        else
          listing.column(title, place? ? :place : :name, :key)
        end
        listing.columns(:generations, spare: true)
        answer[:rows].each { |row| add(listing, row, [], 0) }
        listing
      end

      def title
        [option(:by), @options[:then]].compact
          .map { |by| Columns.fetch(Columns::GROUPS.fetch(by)).heading }.join(", then ")
      end

      # Paths are cut on the left.
      def place? = %i[line file].include?(option(:by)) && !@options[:then]

      def add(listing, row, above, depth)
        keys = above + [key(row, depth)]
        cells = output_format == :csv ? [keys.first, keys.drop(1).join(" / ")] : [keys.last]
        numbers = row.values_at(:retained, :percent, :count, :size)
        generations = generations(row.values_at(:first_generation, :last_generation))
        listing.row(*numbers, *cells, generations, depth: depth)
        row[:rows].each { |below| add(listing, below, keys, depth + 1) }
        return unless row[:more].positive? && @options[:then] && output_format != :csv

        listing.row(nil, nil, nil, nil, "... #{Units.count(row[:more])} more", nil, depth: 1)
      end

      def key(row, depth)
        key = row[:key]
        return "(unknown)" if key.nil?

        by = option(depth.zero? || !@options[:then] ? :by : :then)
        %i[line file].include?(by) && output_format != :csv ? Cell.place(key.to_s) : key.to_s
      end
    end
  end
end
