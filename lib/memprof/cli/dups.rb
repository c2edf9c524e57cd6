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
          page.heading("#{Units.bytes(answer[:wasted])} (#{Units.percentage(answer[:percent])}) wasted by " \
                       "#{Units.count(answer[:duplicates])} duplicates among #{among}")
          page.listing(texts(answer[:rows]))
          more(page, answer[:more], "text") unless answer[:rows].empty?
          warn(page, answer[:warnings])
        end
      end

      def about(file, row, purpose) = [["show", file, row[:address]], purpose]

      def empties(file) = [["dups", "--collections", file], "empty collections"]

      def texts(rows)
        Listing.new.columns(:wasted)
          .columns(:wasted_percent, as: :percent, spare: true)
          .columns(:strings, as: :count).columns(:length, spare: true)
          .columns(:text, most: 44) { |row| quoted(row[:text]) }
          .columns(:holder, most: 40) { |row| Wording.holder(row[:holders].first) }
          .columns(:site, spare: true) { |row| row[:sites].first }
          .columns(:example, as: :address, spare: true)
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
        Listing.new.columns(:type, kind: :label).columns(:count)
          .columns(:size).columns(:elements, spare: true)
          .columns(:empty, from: :empty_count).columns(:empty_size)
          .columns(:single, from: :single_count)
          .columns(:fill, :unused)
          .columns(:empty_holder, as: :holder) do |type|
            Wording.holder(type[:empty_holders].first)
          end
          .rows(types)
      end

      def largest(rows)
        Listing.new.columns(:length)
          .columns(:capacity, spare: true)
          .columns(:unused, :retained)
          .columns(:object, from: :text)
          .columns(:address).columns(:site, spare: true)
          .rows(rows)
      end
    end
  end
end
