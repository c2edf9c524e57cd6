# frozen_string_literal: true

require_relative "../own_code"

module Memprof
  module CLI
    # `memprof leaks`: what retains a large part of the heap.
    class Leaks < HeapCommand
      SUMMARY = "shows what retains most of the memory of a dump"
      USAGE = "[OPTIONS] FILE..."
      DETAILS = <<~TEXT
        A suspect is an object that retains a tenth of the heap or more, or many objects
        of one class that together retain as much. For each suspect, leaks shows what it
        retains, where that was allocated, and what retains it. Own code is the line of
        the application behind it: of a block that a gem retains, the line that it was
        written on. The application is what is no gem and no library of Ruby, or the
        files whose paths match --own.

        Several files are dumps of one process, the oldest first. Then leaks shows what
        grows from dump to dump: what retains it, where it was allocated, and why it is
        retained, as far as the dumps show that. Objects whose paths from the roots are
        alike, but for indices and keys, count together. memprof's own objects are not
        counted.

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
        count("--limit N", "the first N suspects (default: 10); of several", "dumps, findings (default: 3)",
          :limit)
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
          output_format == :csv ? table(page, file, answer) : render(page, file, answer)
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

      def many(files)
        verdict = nil
        heap = nil
        # They are open one after the other: each takes memory.
        files.each do |file|
          heap = open_heap(file)
          verdict ||= Heap::Verdict.new
          busy { verdict.add(heap) }
        end
        answer = busy { verdict.answer(**@options.slice(:limit, :own)) }
        answer = VerdictText.with_source(answer)
        present(answer, further(files, answer)) { |page| VerdictText.new(page, answer).render(output_format) }
      end

      def further(files, answer)
        address = answer[:findings].dig(0, :example, :address)
        found = address ? [[["show", files.last, address], "one of the objects of the first finding"]] : []
        [*found, [["diff", *files], "all that changed, by class"],
          [["leaks", files.last], "what is large, whether it grows or not"]]
      end

      def table(page, file, answer)
        suspects = answer[:suspects].map { |one| one.merge(dump: file) }
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
