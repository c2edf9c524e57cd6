# frozen_string_literal: true

require_relative "heap_command"
require_relative "live_process"
require_relative "../memory"

module Memprof
  module CLI
    # `memprof memory`: where the RSS of a process goes.
    class Memory < HeapCommand
      include LiveProcess

      SUMMARY = "shows where the memory (RSS) of a process goes"
      USAGE = "[OPTIONS] PID | FILE"
      DETAILS = <<~TEXT
        The items add up to the RSS. Accuracy: exact is measured to the page, estimate
        is counted by malloc or Ruby, difference is the remainder.

        A process that has loaded memprof/signal reports all items; for any other, only
        what /proc shows is known. FILE is a dump, which contains the items.

        Examples:
          memprof memory 4711
          memprof memory heap.memprof
          memprof memory --format json 4711
      TEXT
      PID = /\A[1-9]\d{0,9}\z/
      private_constant :PID

      def call(arguments)
        of, = expect_arguments(arguments, "PID or FILE")
        # A file may have any name.
        memory = PID.match?(of) && !File.exist?(of) ? live(of.to_i) : stored(of)
        present(memory.to_h) { |page| tell(page, of, memory) }
      end

      private

      def live(pid)
        @options[:pid] = pid
        target = target([])
        answer = target.connect ? ask(target, { do: "memory" })["memory"] : nil
        load_library
        answer ? Memprof::Memory.new(JSON.parse(JSON.generate(answer), symbolize_names: true)) : outside(pid)
      end

      def outside(pid)
        Memprof::Memory.of(pid)
      rescue Memprof::Error => e
        raise UsageError, e.message
      end

      def stored(file)
        open_heap(file).memory || raise(UsageError,
          "#{file} does not contain what was measured: dumps of memprof's own formats do")
      end

      def tell(page, of, memory)
        text = Memprof::Memory::Text.new(memory)
        page.heading("#{of}: #{text.heading}")
        page.listing(listing(memory))
        page.paragraph(text.sentences.join(" "))
      end

      def listing(memory)
        listing = Listing.new.column("Size", :bytes, :bytes).column("Share", :percent, :percent)
          .column("What", :name, :name).column("Accuracy", :name, :accuracy)
        memory.items.each do |item|
          listing.row(item.bytes, item.bytes * 100.0 / memory.rss, item.name, item.accuracy)
        end
        listing
      end
    end
  end
end
