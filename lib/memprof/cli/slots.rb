# frozen_string_literal: true

require_relative "heap_command"

module Memprof
  module CLI
    # `memprof slots`: how well the heap's pages are filled.
    class Slots < HeapCommand
      SUMMARY = "tells how full the pages of the heap in a dump are"
      USAGE = "[OPTIONS] FILE"
      DETAILS = <<~TEXT
        A page without objects can be given back to the system; one object keeps all of
        it. Returnable is what could be given back if objects stood side by side: the
        price of fragmentation.

        Example:
          memprof slots heap.memprof
      TEXT

      def call(arguments)
        file, = expect_arguments(arguments, "FILE")
        answer = put(open_heap(file), :slots, **@options.slice(:nearly_empty))
        status = present(answer) do |page|
          page.heading(answer[:sentence])
          page.listing(sizes(answer))
          page.listing(filled(answer), heading: "Pages by how many of their slots are used")
        end
        next_steps([[["histogram", file, "--by", "slot", "--then", "class"], "what is in them"]])
        status
      end

      private

      def define_own_options(parser)
        parser.on("--nearly-empty PERCENT", Float, "of used slots up to which a page is",
          "nearly empty (default: 10)") do |percent|
          raise OptionParser::InvalidArgument, "must be between 0 and 100" unless (0..100).cover?(percent)

          @options[:nearly_empty] = percent
        end
      end

      def sizes(answer)
        keys = %i[slot pages slots used free fill nearly_empty_pages nearly_empty_objects returnable]
        listing = Listing.new.column("Slot", :bytes, :slot).column("Pages", :count, :pages)
          .column("Slots", :count, :slots, spare: true).column("Used", :count, :used)
          .column("Free", :count, :free, spare: true).column("Full", :percent, :fill)
          .column("Nearly empty", :count, :nearly_empty_pages)
          .column("Kept by", :count, :nearly_empty_objects)
          .column("Returnable", :bytes, :returnable)
        answer[:rows].each { |row| listing.row(*row.values_at(*keys)) }
        listing
      end

      def filled(answer)
        listing = Listing.new.column("Slot", :bytes, :slot)
        10.times { |tenth| listing.column("-#{(tenth + 1) * 10} %", :count, "to_#{(tenth + 1) * 10}") }
        answer[:rows].each { |row| listing.row(row[:slot], *row[:fill_histogram]) }
        listing
      end
    end
  end
end
