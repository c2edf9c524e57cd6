# frozen_string_literal: true

require_relative "growth_rows"
require_relative "heap_command"
require_relative "steps"

module Memprof
  module CLI
    # `memprof leaks`: what keeps a large part of the heap alive.
    #
    # @api private
    class Leaks < HeapCommand
      COMPARED = 3 # files at most
      private_constant :COMPARED

      SUMMARY = "tells what keeps most of the memory of a dump alive"
      USAGE = "[OPTIONS] FILE..."
      DETAILS = <<~TEXT
        A suspect is an object without which a tenth of the heap or more would be free,
        or many objects of one class below one holder that are as large together. Told
        are what it holds, where that was made, and who holds it.

        Of several files each suspect is one sentence. Two or three are taken for dumps
        of one process, the oldest first: what grew between them comes first.

        Examples:
          memprof leaks heap.memprof
          memprof leaks --threshold 2 heap.memprof
          memprof leaks before.memprof after.memprof
      TEXT

      # @param arguments [Array<String>] dumps
      # @return [Integer] exit status
      # @raise [UsageError] if there is none
      def call(arguments)
        raise UsageError, "FILE is missing; see `memprof help leaks`" if arguments.empty?

        arguments.each { |file| check_readable(file) }
        arguments.one? ? one(arguments.first) : many(arguments)
      end

      private

      def define_own_options(parser)
        parser.on("--threshold PERCENT", Float, "of the heap that make a suspect (default: 10)") do |percent|
          sense = percent.positive? && percent <= 100
          raise OptionParser::InvalidArgument, "must be above 0 and at most 100" unless sense

          @options[:threshold] = percent
        end
        limit(parser, "the first N suspects", 10)
      end

      def suspects(heap)
        put(heap, :suspects, **@options.slice(:threshold, :limit))
      end

      def one(file)
        answer = suspects(open_heap(file))
        status = present(answer) do |page|
          output_format == :csv ? table(page, [[file, answer]]) : tell(page, file, answer)
        end
        suspect = answer[:suspects].first
        next_steps(suspect ? steps(file, suspect[:object][:address]) : [[["top", file], "the largest"]])
        status
      end

      def steps(file, address)
        [
          [["show", file, address], "all about the first one"],
          [["tree", file, address], "what it keeps alive, level by level"],
          [["histogram", file], "what the heap consists of"]
        ]
      end

      def tell(page, file, answer)
        page.heading(title(file, answer))
        answer[:suspects].each_with_index do |suspect, index|
          page.paragraph("#{index + 1}. #{Steps.shorten(suspect[:sentence])}")
          page.listing(accumulated(suspect))
          page.listing(Steps.listing(suspect[:path]))
        end
        more(page, answer[:more], "suspect")
        warn(page, answer[:remarks])
      end

      def title(file, answer)
        count = answer[:suspects].size + answer[:more]
        "#{file}: #{Units.bytes(answer[:total])} reachable, #{plural(count, "suspect")}"
      end

      def accumulated(suspect)
        listing = Listing.new.column("Retained", :bytes, :retained).column("Objects", :count, :count)
          .column("Holds", :name, :class).column("Made at", :place, :site, spare: true)
          .column("Generations", :number, :generations, spare: true)
        suspect[:accumulated].each do |held|
          listing.row(held[:retained], held[:count], held[:class], site(held), generations(held))
        end
        listing
      end

      def site(held)
        place = held[:site] && Cell.place(held[:site])
        place && held[:at_site] < held[:count] ? "#{place} (#{Units.count(held[:at_site])} of them)" : place
      end

      def generations(held)
        first, last = held[:generations]
        first == last ? first : "#{first}-#{last}"
      end

      # One sentence a suspect; what grew comes first.
      def many(files)
        if files.size <= COMPARED
          heaps = files.map { |file| open_heap(file) }
          growth = growth(compare(heaps))
        end
        # More than that are open one after the other: each takes memory.
        answers = files.each_with_index.map do |file, index|
          [file, suspects(heaps ? heaps[index] : open_heap(file))]
        end
        dumps = answers.map { |file, answer| { file: file }.merge(answer) }
        present({ growth: growth, dumps: dumps }) do |page|
          output_format == :csv ? table(page, answers) : sentences(page, answers, growth)
        end
      end

      def growth(diff)
        { totals: put(diff, :totals), owners: put(diff, :owners, limit: @options.fetch(:limit, 10)) }
      end

      def sentences(page, answers, growth)
        grown(page, growth) if growth
        answers.each do |file, answer|
          page.heading(title(file, answer))
          answer[:suspects].each { |suspect| page.text("- #{Steps.shorten(suspect[:sentence])}") }
          answer[:remarks].each { |remark| page.text("Note: #{remark}") }
        end
      end

      def grown(page, growth)
        page.heading(GrowthRows.title(growth[:totals]))
        GrowthRows.held(holders(growth)).each { |sentence| page.text("- #{sentence}") }
        warn(page, growth.values.flat_map { |part| part[:warnings] })
      end

      # Those that hold much of what is new. In the dump of another process everything is.
      def holders(growth)
        totals = growth[:totals]
        return [] if totals[:kept][:count].zero?

        growth[:owners][:owners].select { |owner| owner[:retained_by_new] * 100 >= totals[:new][:size] }
      end

      # For CSV.
      def table(page, answers)
        listing = Listing.new.column("File", :name, :dump).column("Address", :address, :address)
          .column("Object", :name, :object).column("Retained", :bytes, :retained)
          .column("Share", :percent, :percent)
          .column("Holds", :name, :holds).column("Objects", :count, :count).column("Made at", :place, :site)
          .column("Path", :name, :path)
        answers.each do |file, answer|
          answer[:suspects].each do |suspect|
            object = suspect[:object]
            held = suspect[:accumulated].first
            listing.row(file, object[:address], object[:text], suspect[:retained], suspect[:percent],
              held && held[:class], held && held[:count], suspect[:site], suspect[:path][:sentence])
          end
        end
        page.listing(listing)
      end
    end
  end
end
