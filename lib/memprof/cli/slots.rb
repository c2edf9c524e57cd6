# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof slots`: how full the heap's pages are.
    class Slots < HeapCommand
      SUMMARY = "shows how full the heap pages of a dump are"
      USAGE = "[OPTIONS] FILE"
      DETAILS = <<~TEXT
        Ruby can return a heap page to the system only when the page is empty; a single
        object prevents that. Returnable is the memory of the pages that compaction
        would empty: the cost of fragmentation.

        Example:
          memprof slots heap.memprof
      TEXT

      def call(arguments)
        file, = expect_arguments(arguments, "FILE")
        answer = ask(open_heap(file), :slots, **chosen(:nearly_empty))
        steps = [[["histogram", file, "--by", "slot", "--then", "class"], "their objects by class"]]
        present(answer, steps) do |page|
          page.heading(answer[:sentence])
          page.listing(sizes(answer))
          page.listing(filled(answer), heading: "Pages by share of used slots")
        end
      end

      private

      def sizes(answer)
        Listing.new.columns(:slot_size, as: :slot).columns(:pages)
          .columns(:slots, spare: true).columns(:used)
          .columns(:free, spare: true).columns(:fill, :nearly_empty_pages, :nearly_empty_objects, :returnable)
          .rows(answer[:rows])
      end

      def filled(answer)
        listing = Listing.new.columns(:slot_size, as: :slot)
        10.times do |tenth|
          most = (tenth + 1) * 10
          listing.column("to #{most} %", :count, "to_#{most}") { |row| row[:fill_histogram][tenth] }
        end
        listing.rows(answer[:rows])
      end
    end
  end
end
