# frozen_string_literal: true

require_relative "../own_code"

module Memprof
  module CLI
    # `memprof leaks`: what retains a large part of the heap.
    class Leaks < HeapCommand
      OWNERS = 1000 # of a comparison that are looked at
      private_constant :OWNERS

      SUMMARY = "shows what retains most of the memory of a dump"
      USAGE = "[OPTIONS] FILE..."
      DETAILS = <<~TEXT
        A suspect is an object that retains a tenth of the heap or more, or many objects
        of one class that together retain as much. For each suspect, leaks shows what it
        retains, where that was allocated, and what retains it. Own code is the line of
        the application behind it: of a block that a gem retains, the line that it was
        written on. The application is what is no gem and no library of Ruby, or the
        files whose paths match --own.

        Several files are dumps of one process, the oldest first. Objects that grew from
        dump to dump come first, then the suspects of each dump, one sentence each.
        Growth is measured from the first dump to the last but one; the last shows what
        survived. memprof's own objects are not counted.

        Examples:
          memprof leaks heap.memprof
          memprof leaks --threshold 2 heap.memprof
          memprof leaks --own '/engines/shop/' heap.memprof
          memprof leaks before.memprof after.memprof
          memprof leaks 1.memprof 2.memprof 3.memprof 4.memprof
      TEXT

      def call(arguments)
        raise UsageError, "FILE is missing; see `memprof help leaks`" if arguments.empty?

        arguments.each { |file| check_readable(file) }
        arguments.one? ? one(arguments.first) : many(arguments)
      end

      private

      def define_own_options
        checked("--threshold PERCENT", Float, "share of the heap of a suspect (default: 10)",
          :threshold, "a number above 0 and at most 100") do |percent|
          percent if percent.positive? && percent <= 100
        end
        limit("the first N suspects", 10)
        text("--own PATTERN", "own code: files whose paths match this regexp", :own)
      end

      def suspects(heap)
        OwnCode.with_source(ask(heap, :suspects, **@options.slice(:threshold, :limit, :own)))
      end

      def one(file)
        answer = suspects(open_heap(file))
        suspect = answer[:suspects].first
        steps = suspect ? steps(file, suspect[:object][:address]) : [[["top", file], "the largest objects"]]
        present(answer, steps) do |page|
          output_format == :csv ? table(page, [[file, answer]]) : render(page, file, answer)
        end
      end

      def steps(file, address)
        [
          [["show", file, address], "details of the first suspect"],
          [["tree", file, address], "what it retains, level by level"],
          [["histogram", file], "objects by class"]
        ]
      end

      def render(page, file, answer)
        page.heading(title(file, answer))
        answer[:suspects].each_with_index do |suspect, index|
          page.paragraph("#{index + 1}. #{Wording.phrase(suspect[:phrase])}")
          page.facts(own_code(suspect[:own])) if suspect[:own]
          page.listing(accumulated(suspect))
          page.listing(Objects.path(suspect[:path]))
        end
        more(page, answer[:more], "suspect")
        warn(page, answer[:remarks])
      end

      def own_code(own) = { "Own code" => OwnCode.sentence(own), "Source" => own[:source] }

      def title(file, answer)
        count = answer[:suspects].size + answer[:more]
        "#{file}: #{Units.bytes(answer[:total])} reachable, #{Units.plural(count, "suspect")}"
      end

      def accumulated(suspect)
        Listing.new.column("Retained size", :bytes, :retained).column("Objects", :count, :count)
          .column("Class", :name, :class)
          .column("Allocated at", :place, :site, spare: true) { |held| site(held) }
          .column("Generations", :number, :generations, spare: true) { |one| generations(one[:generations]) }
          .rows(suspect[:accumulated])
      end

      def site(held)
        place = held[:site] && Cell.place(held[:site])
        place && held[:at_site] < held[:count] ? "#{place} (#{Units.count(held[:at_site])} of them)" : place
      end

      # One sentence a suspect; what grew comes first.
      def many(files)
        heaps = compared(files)
        diff = compare(heaps.values)
        totals = ask(diff, :totals)
        # Which of them grow shows in the other dumps.
        owners = ask(diff, :owners, sort: :retained, limit: OWNERS, grown: true)
        growth = HeapGrowth.new(totals, owners[:owners])
        # The others are open one after the other: each takes memory.
        answers = files.each_with_index.map do |file, index|
          heap = heaps[index] || open_heap(file)
          growth.note(heap)
          [file, suspects(heap)]
        end
        dumps = answers.map { |file, answer| { file: file }.merge(answer) }
        owners = owners.merge(owners: growth.owners.first(@options.fetch(:limit, 10)))
        growth = { memory: ask(diff, :memory), totals: totals, owners: owners }
        present({ growth: growth, dumps: dumps }) do |page|
          output_format == :csv ? table(page, answers) : sentences(page, answers, growth)
        end
      end

      # The first dump, the last but one and the last, by their places.
      def compared(files)
        places = [0, files.size - 2, files.size - 1].uniq
        places.to_h { |place| [place, open_heap(files[place])] }
      end

      def sentences(page, answers, growth)
        # In the dump of another process everything is new.
        same = growth[:totals][:kept][:count].positive?
        page.text(Wording.memory(growth[:memory])) if growth[:memory] && same
        page.heading(Wording.growth(growth[:totals]))
        GrowthRows.held(growth[:owners][:owners]).each { |sentence| page.text("- #{sentence}") }
        warn(page, growth[:totals][:warnings])
        answers.each do |file, answer|
          page.heading(title(file, answer))
          answer[:suspects].each { |suspect| page.text("- #{brief(suspect)}") }
          answer[:remarks].each { |remark| page.text("Note: #{remark}") }
        end
      end

      def brief(suspect)
        own = suspect[:own]
        "#{Wording.phrase(suspect[:phrase])}#{" Own code: #{OwnCode.sentence(own)}." if own}"
      end

      def table(page, answers)
        suspects = answers.flat_map { |file, answer| answer[:suspects].map { |one| one.merge(dump: file) } }
        held = ->(suspect) { suspect[:accumulated].first || {} }
        page.listing(Listing.new.column("File", :name, :dump)
          .column("Address", :address, :address) { |suspect| suspect[:object][:address] }
          .column("Object", :name, :object) { |suspect| suspect[:object][:text] }
          .column("Retained size", :bytes, :retained).column("Retained %", :percent, :percent)
          .column("Holds", :name, :holds) { |suspect| held.(suspect)[:class] }
          .column("Objects", :count, :count) { |suspect| held.(suspect)[:count] }
          .column("Allocated at", :place, :site)
          .column("Path", :name, :path) { |suspect| suspect[:path][:sentence] }
          .column("Own code", :place, :own)
          .rows(suspects))
      end
    end
  end
end
