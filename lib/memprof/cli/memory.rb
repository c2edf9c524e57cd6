# frozen_string_literal: true

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
        is what malloc or Ruby counts, difference is the remainder.

        A process that has loaded memprof/signal reports all items; for any other, only
        what /proc shows is known. FILE is a dump, which contains the items.

        With --workers PID is the master of a server such as puma, or any process that
        forks. It gets a row, and so does each process forked from it.

        Examples:
          memprof memory 4711
          memprof memory --workers 4711
          memprof memory heap.memprof
          memprof memory --format json 4711
      TEXT
      # Seconds to wait for a process's answer: it may hang.
      PATIENCE = 5
      # Items that a heap dump explains.
      OBJECTS = %i[slots_used objects iseqs].freeze
      private_constant :PATIENCE, :OBJECTS

      def call(arguments)
        of, = expect_arguments(with_pid(arguments), @options[:workers] ? "PID" : "PID or FILE")
        return workers(of) if @options[:workers]

        memory = pid?(of) ? live(of) : stored(of)
        present(memory.to_h, steps(of, memory)) { |page| render(page, of, memory) }
      end

      private

      # The command that explains the larger part comes first.
      def steps(of, memory)
        return [[["leaks", of], "what retains most of the objects"]] unless pid?(of)

        malloc = [["attach", of, "--malloc"], "lines whose malloc'ed memory is still live"]
        objects = [["dump", of], "a heap dump, for memprof leaks"]
        in_objects = OBJECTS.sum { |key| memory[key] }
        (memory[:malloc] > in_objects) ? [malloc, objects] : [objects, malloc]
      end

      def live(pid)
        target = target_of(pid)
        load_library
        own = own_answer(target) unless target.stopped?
        return own if own

        memory = Memprof::Memory.of(target.pid)
        # Its PID may belong to another process by now.
        target.running? ? memory : raise(UsageError, "process #{pid} ended")
      end

      # A process may answer anything: rendering is tried first.
      def measured(answer)
        memory = Memprof::Memory.new(JSON.parse(JSON.generate(answer), symbolize_names: true))
        text = Memprof::Memory::MemoryText.new(memory)
        shown = [text.heading, text.sentences, listing(memory).to_text]
        JSON.generate([memory.to_h, memory.items.sum(&:bytes), shown])
        memory
      rescue StandardError
        raise Control::Broken, "its answer cannot be read"
      end

      def workers(of)
        master = target_of(of)
        load_library
        cluster = Memprof::Memory::Cluster.of(master.pid) { |pid| own_answer(Target.new(pid)) }
        present(cluster.to_h) { |page| render_cluster(page, of, cluster) }
      end

      # A process's own answer if it has loaded memprof/signal; nil otherwise, or without an answer.
      def own_answer(target)
        client = target.connect or return
        measured(client.ask({ do: "memory" }, seconds: PATIENCE)["memory"])
      rescue Control::Broken => e
        @terminal.warn("process #{target.pid}: #{e.message}; shown is what /proc knows")
        nil
      rescue SystemCallError
        nil
      ensure
        client&.close
      end

      def render_cluster(page, of, cluster)
        text = Memprof::Memory::Cluster::ClusterText.new(cluster)
        listing = Listing.new.columns(*text.columns)
        listing.columns(:pid).columns(:process, as: :name).rows(cluster.processes)
        page.heading("#{of}: #{text.heading}")
        page.listing(listing)
        page.paragraph(text.sentences.join(" "))
      end

      def stored(file)
        open_heap(file).memory || raise(UsageError,
          "#{file} does not contain what was measured: dumps of memprof's own formats do")
      end

      def render(page, of, memory)
        text = Memprof::Memory::MemoryText.new(memory)
        page.heading("#{of}: #{text.heading}")
        page.listing(listing(memory))
        page.paragraph(text.sentences.join(" "))
      end

      def listing(memory)
        Listing.new.columns(:memory, as: :bytes, &:bytes)
          .columns(:share, as: :percent) { |item| item.bytes * 100.0 / memory.rss }
          .columns(:what, as: :name, &:name).columns(:accuracy, &:accuracy)
          .rows(memory.items)
      end
    end
  end
end
