# frozen_string_literal: true

require_relative "request"
require_relative "answers"
require_relative "comparison"
require_relative "heap_entry"
require_relative "records"

module Memprof
  class Web
    # The available heaps, by number, and where more come from. Each is opened on first access. At most
    # `max_open` are open at once: then the least recently used heap is closed, and reopened on demand. A heap
    # stays open while a request uses it.
    #
    # Dumps of the running process, and of a library, have permanent numbers: their addresses stay valid in
    # each worker of a server, and tomorrow.
    class Heaps
      include Enumerable

      # Maximum number of open heaps by default.
      MOST_OPEN = 8
      # A comparison needs three.
      LEAST_OPEN = 3
      # Comparisons that are cached: new and freed objects are computed once for all their pages.
      COMPARISONS = 4
      private_constant :COMPARISONS

      attr_reader :max_open, :records, :live, :library

      def initialize(live: nil, library: nil, max_open: MOST_OPEN, **options)
        @comparisons = Answers.new(COMPARISONS)
        @verdicts = Answers.new(COMPARISONS)
        @records = Records.new
        @live = live
        @library = library
        @options = options
        @lock = Mutex.new
        @entries = {}
        @last = 0
        @pid = Process.pid
        @closing = Mutex.new
        self.max_open = max_open
      end

      def max_open=(number)
        unless number.is_a?(Integer) && number >= LEAST_OPEN
          raise ArgumentError,
            "invalid max_open #{number.inspect}; expected an Integer of at least #{LEAST_OPEN}"
        end

        @max_open = number
      end

      # Keeps heaps open during a block, and makes room for those that are not open yet.
      def using(*entries)
        entries.each(&:acquire)
        make_room
        yield
      ensure
        entries.each(&:release)
        # More heaps than the maximum may have been in use.
        make_room
      end

      # `file` is the name by which users know the file, if it is another.
      def add(path, name: nil, file: path, **options)
        @lock.synchronize do
          @last += 1
          @entries[@last] = Entry.new(@last, name || File.basename(path), path: path, file: file,
            options: options)
        end
      end

      def fetch(id)
        number = Integer(id.to_s, 10, exception: false)
        after_fork unless @pid == Process.pid
        @lock.synchronize { @entries[number] } || kept(number) ||
          raise(NotFound, "no heap #{id}")
      end

      def each(&block) = @lock.synchronize { @entries.values }.each(&block)

      def comparison(entries) = @comparisons.fetch(entries.map(&:id)) { Comparison.new(entries) }

      # The verdict on heaps of one process, in chronological order.
      def verdict(entries)
        entries.each(&:prepare)
        heaps = entries.map(&:heap)
        @verdicts.fetch(entries.map(&:id)) do
          heaps.reduce(Memprof::Heap::Verdict.new) { |verdict, heap| verdict.add(heap) }
        end
      end

      # Releases a heap's memory and files as soon as no page reads it any more. It stays in the list, and is
      # reopened on demand.
      def close(id)
        entry = fetch(id)
        entry.unload
        forget_comparisons(entry)
        # Heaps are not in Ruby's memory, so Ruby would not run GC for a long time.
        GC.start
      end

      # Closes a heap, and removes it from the list.
      def forget(id)
        entry = fetch(id)
        @lock.synchronize { @entries.delete(entry.id) }
        forget_comparisons(entry)
        entry.close
      end

      def close_all = each { |entry| forget(entry.id) }

      private

      # A forked worker has neither the threads that open heaps nor those that use them.
      def after_fork
        @lock.synchronize do
          @pid = Process.pid
          @entries.delete_if { |_, entry| entry.state == :opening }
          @entries.each_value(&:forget_users)
        end
      end

      # Closes the least recently used heaps, until at most max_open are open.
      def make_room
        rested = @closing.synchronize do
          spare = count(&:takes_memory?) - @max_open
          sort_by(&:used).select do |entry|
            spare.positive? && entry.unload_unused && (spare -= 1)
          end
        end
        return if rested.empty?

        rested.each { |entry| forget_comparisons(entry) }
        GC.start # see #close
      end

      def forget_comparisons(entry)
        [@comparisons, @verdicts].each { |answers| answers.forget_if { |ids| ids.include?(entry.id) } }
      end

      def kept(number)
        found = number && [@live&.dumps, @library].compact.filter_map { |source| source.find(number) }.first
        return unless found

        @lock.synchronize do
          @entries[number] ||= Entry.new(number, found.name, path: found.path, options: @options)
        end
      end
    end
  end
end
