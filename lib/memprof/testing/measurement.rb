# frozen_string_literal: true

module Memprof
  module Testing
    # Disables GC while blocks run, in any number of threads: the last one to leave enables it again. Only
    # bytes need this: the memory of a C extension's object outside its slot is unknown once it is freed.
    module GCPause
      @lock = Lock.new
      @holders = 0

      def self.hold(&block) = Bracket.run(-> { enter }, -> { leave }, &block)

      def self.enter
        @lock.synchronize do
          @was_disabled = GC.disable if @holders.zero?
          @holders += 1
        end
        true
      end
      private_class_method :enter

      def self.leave
        @lock.synchronize do
          @holders -= 1
          GC.enable if @holders.zero? && !@was_disabled
        end
      end
      private_class_method :leave
    end

    # References that the VM retains after a block has run, though the program can't reach them: without
    # handling these, a block that retains nothing would seem to, sometimes or always.
    module Leftovers
      # The GC treats anything on the machine stack that looks like an address as a reference, even where
      # returned C functions left it. So the block runs this many C calls deeper than the GC, and that part of
      # the stack is cleared.
      DEPTH = 8
      private_constant :DEPTH

      def self.run_deep(depth = DEPTH, &work)
        return yield if depth.zero?

        # Calls from Ruby to Ruby take no machine stack; a block that C calls does, and `catch` is always C.
        catch { run_deep(depth - 1, &work) }
      end

      # Clears the stack where .run_deep worked, and the last value that another Fiber passed to this one.
      def self.drop
        Fiber.new { nil }.resume
        Native.clear_stack
      end

      # Saves the last match (`$~`) of the method that contains the block: a new one would be retained as long
      # as the method runs, which is beyond the end of the measurement.
      def self.last_match(block)
        block.binding.eval("match = $~; -> { $~ = match }", __FILE__, __LINE__)
      rescue ArgumentError
        -> {} # a Symbol or a Method as a block has no such variable
      end
    end

    # The allocated and, if requested, retained objects of one run of a block, by site and class.
    #
    # Only counts objects that the calling thread (and those it starts) allocated between the block's first
    # line and its last, so tests that run in parallel do not interfere, and objects of the test framework do
    # not count. GC is enabled while objects are counted; it is disabled while the block runs if bytes are
    # needed.
    class Measurement
      # How to measure: runs before the one that counts, which numbers are needed beyond counts of
      # allocations, and the ClassFilters to apply.
      Plan = Struct.new(:warmup, :bytes, :retained, :filters) do
        def |(other)
          self.class.new([warmup, other.warmup].max, bytes || other.bytes, retained || other.retained,
            filters | other.filters)
        end
      end

      # The objects of one class allocated at one line. Anonymous classes are known only while they are
      # tracked: `keys` has the results of each ClassFilter from then.
      Row = Struct.new(:file, :line, :class_name, :keys, :objects, :bytes) do
        # The VM's own objects (`<iseq>`, `<callcache>`, `<imemo>`): mostly caches, allocated at the VM's
        # discretion.
        def internal?
          class_name.start_with?("<")
        end
      end

      # GC runs until only retained objects remain: a finalizer may retain some until the next one.
      COLLECTIONS = 3
      private_constant :COLLECTIONS

      attr_reader :allocated, :retained

      def initialize(block, plan, &around)
        @allocated = @retained = []
        @filters = plan.filters
        restore = Leftovers.last_match(block) if plan.retained
        plan.warmup.times { block.call } unless around
        Leftovers.run_deep { call(around || :call.to_proc, work(block, plan, around), plan.bytes) }
        restore&.call
        read(plan) if @session
      ensure
        # Here, because a block can exit in many ways, including `throw`.
        @session&.close
        @session = nil
      end

      private

      # The block as it is measured. If a caller rescues its exceptions, it also warms up inside of that.
      def work(block, plan, around)
        ->(*arguments) {
          plan.warmup.times { warm_up(block, arguments) } if around
          run(plan.bytes) { block.call(*arguments) }
        }
      end

      def warm_up(block, arguments)
        block.call(*arguments)
      rescue StandardError, ScriptError, SystemExit
        # Raised again in the run that counts.
      end

      # Drops the value.
      def call(around, work, pause)
        pause ? GCPause.hold { around.call(work) } : around.call(work)
        nil
      end

      # Nothing may be allocated between open and the block, or the block and finish. The block's exceptions
      # propagate to the caller; its allocations up to there count.
      def run(read_now)
        @session&.close
        @session = Session.prepare(scope: :thread, identities: true)
        begin
          @session.open
          yield
        ensure
          @session.finish
          @allocated = rows(@session.counts(retained: true)).first if read_now
        end
      end

      def read(plan)
        return read_retained(plan.bytes) if plan.retained

        @allocated = rows(@session.counts(retained: true)).first unless plan.bytes
      end

      def read_retained(allocated_known)
        Leftovers.drop
        collect
        allocated, @retained = rows(@session.counts(retained: true))
        @allocated = allocated unless allocated_known
      end

      def collect
        live = nil
        COLLECTIONS.times do
          GC.start
          before = live
          live = @session.stats.sum(&:first)
          break if live.zero? || live == before
        end
      end

      def rows(counts)
        allocated = []
        retained = []
        counts.each do |_, (file, line, class_name, number), *amounts|
          keys = number && @filters.to_h { |filter| [filter, filter.key_for(class_name, number)] }
          [allocated, retained].zip(amounts) do |rows, (objects, bytes)|
            rows << Row.new(file, line, class_name, keys, objects, bytes) if objects.positive?
          end
        end
        [allocated, retained]
      end
    end
  end
end
