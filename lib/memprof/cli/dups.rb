# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof dups`: duplicate strings, and collections with few or no elements.
    class Dups < HeapCommand
      SUMMARY = "finds duplicate strings and empty collections in a dump"
      USAGE = "[OPTIONS] FILE"
      DETAILS = <<~TEXT
        Wasted is the memory that sharing one copy of each string would free. Garbage is
        not counted: the next GC frees it.
        --collections shows arrays, hashes, structs and sets instead: how many are
        empty, what references the empty ones, and which have the most unused capacity.

        Examples:
          memprof dups heap.memprof
          memprof dups --where 'file ~ "app/"' heap.memprof
          memprof dups --collections --sort unused heap.memprof
      TEXT

      def call(arguments)
        file, = expect_arguments(arguments, "FILE")
        refuse_options(%i[sort], "needs --collections") unless @options[:collections]
        heap = open_heap(file)
        @options[:collections] ? collections(file, heap) : strings(file, heap)
      end

      private

      def strings(file, heap)
        answer = ask(heap, :duplicates, **chosen(:where, :limit), min: option(:min_copies))
        first = answer[:rows].first
        steps = [(about(file, first, "one of the first group") if first), empties(file)].compact
        present(answer, steps) do |page|
          among = Units.plural(answer[:count], "string")
          page.heading("#{Units.bytes(answer[:wasted])} (#{Cell.percent(answer[:percent])}) wasted by " \
                       "#{Units.count(answer[:duplicates])} duplicates among #{among}")
          page.listing(texts(answer[:rows]))
          more(page, answer[:more], "text") unless answer[:rows].empty?
          warn(page, answer[:warnings])
        end
      end

      def about(file, row, purpose) = [["show", file, row[:address]], purpose]

      def empties(file) = [["dups", "--collections", file], "empty collections"]

      def texts(rows)
        Listing.new.column("Wasted", :bytes, :wasted)
          .column("Wasted %", :percent, :percent, spare: true)
          .column("Strings", :count, :count).column("Length", :count, :length, spare: true)
          .column("Text", :name, :text, most: 44) { |row| quoted(row[:text]) }
          .column("Referenced by", :name, :holder, most: 40) { |row| Wording.holder(row[:holders].first) }
          .column("Allocated at", :place, :site, spare: true) { |row| row[:sites].first }
          .column("Example", :address, :address, spare: true)
          .rows(rows)
      end

      def quoted(text)
        return "(unknown)" unless text

        output_format == :csv ? text : text.inspect
      end

      def collections(file, heap)
        answer = ask(heap, :collections, **chosen(:where, :limit, :sort))
        first = answer[:rows].first
        present(answer, first ? [about(file, first, "details of the first")] : []) do |page|
          sums = kinds(answer[:types])
          page.listing(sums, heading: "Collections") unless output_format == :csv
          page.listing(largest(answer[:rows]), heading: "By #{answer[:sort]}")
          more(page, answer[:more], "collection") unless answer[:rows].empty?
          warn(page, answer[:warnings])
        end
      end

      def kinds(types)
        Listing.new.column("Type", :label, :type).column("Objects", :count, :count)
          .column("Shallow size", :bytes, :size).column("Elements", :count, :elements, spare: true)
          .column("Empty", :count, :empty, from: :empty_count).column("Size of empty", :bytes, :empty_size)
          .column("One element", :count, :single, from: :single_count)
          .column("Fill %", :percent, :fill).column("Unused", :bytes, :unused)
          .column("Empty ones referenced by", :name, :holder) do |type|
            Wording.holder(type[:empty_holders].first)
          end
          .rows(types)
      end

      def largest(rows)
        Listing.new.column("Length", :count, :length)
          .column("Capacity", :count, :capacity, spare: true)
          .column("Unused", :bytes, :unused).column("Retained size", :bytes, :retained)
          .column("Object", :name, :object, from: :text)
          .column("Address", :address, :address).column("Allocated at", :place, :site, spare: true)
          .rows(rows)
      end
    end
  end
end
