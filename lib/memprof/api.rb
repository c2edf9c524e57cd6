# frozen_string_literal: true

# By path: for a name, RubyGems looks through all gems, which takes a millisecond per file in Rails.
require_relative "version"
require_relative "errors"
require_relative "loading"
require_relative "lock"
require_relative "support"
require_relative "session"
# Not on demand: a constant defined later would invalidate the inline caches of the tracked program.
require_relative "output"
require_relative "report"
require_relative "tracing"

# Shows which lines of a Ruby program allocate objects, and which of them are retained.
#
# @example Objects that a block made and that live at its end
#   Memprof.track { 12.times { "abc" } }
#
# @example What a block allocates and what it retains, in memory_profiler's shape
#   report = Memprof.report { @cache = Array.new(100) { "abc" } }
#   report.pretty_print
#
# @example What grows from run to run
#   puts Memprof.growth { (@log ||= []) << "line" }
module Memprof
  autoload :Census, "#{__dir__}/census"
  autoload :Core, "#{__dir__}/core"
  autoload :Dump, "#{__dir__}/dump"
  autoload :Filter, "#{__dir__}/compat/filter"
  autoload :Growth, "#{__dir__}/growth"
  autoload :Heap, "#{__dir__}/heap"
  autoload :Iseqs, "#{__dir__}/iseqs"
  autoload :JobTracer, "#{__dir__}/job_tracer"
  autoload :Malloc, "#{__dir__}/malloc"
  autoload :Memory, "#{__dir__}/memory"
  autoload :Middleware, "#{__dir__}/middleware"
  autoload :Trace, "#{__dir__}/trace"
  autoload :Tracer, "#{__dir__}/tracer"
  autoload :Tracers, "#{__dir__}/tracers"
  autoload :Web, "#{__dir__}/web"

  class << self
    # Tracks the objects of the whole process from now on.
    #
    # @param sample [Integer, nil] record one object in so many, on average, and scale up counts and bytes
    # @param stack [Integer] frames to store of each object's call stack
    # @return [Boolean] true, or false if objects were already tracked (with unchanged options)
    # @raise [ArgumentError] if an option is invalid
    # @raise [Unsupported] if this Ruby can't be tracked
    # @example
    #   Memprof.start
    #   @kept = Array.new(3) { "abc".dup }
    #   Memprof.stats
    #   Memprof.stop
    def start(sample: nil, stack: 1)
      started = Session.prepare(sample: sample, stack: stack).open_for(self)
      @session&.leased = false
      started
    end

    # Stops tracking and discards its data. Inside {track}, it ends that block's tracking.
    #
    # @return [Boolean] true, or false if nothing was tracked
    # @example
    #   Memprof.start
    #   Memprof.stop #=> true
    #   Memprof.stop #=> false
    def stop
      Support.check_ractor
      @session ? Native.close_for(self) : false
    end

    # @return [Boolean] whether objects are tracked, by {start} or {track}
    # @example
    #   Memprof.track { Memprof.running? } #=> true
    def running?
      Support.check_ractor
      session = @session
      !session.nil? && !session.closed?
    end

    # Writes the live tracked objects as lines `"%7d file:line:Class"`, most first, ties by place.
    #
    # @param path_or_io [String, Pathname, IO, nil] a file to replace, or an IO; standard output if nil
    # @return [nil]
    # @raise [NotRunning] if nothing is tracked
    # @raise [Error] if the file can't be written
    # @example
    #   Memprof.start
    #   10.times { $last = Object.new }
    #   Memprof.stats      # 10 objects of this line
    #   GC.start
    #   Memprof.stats      # 1 object
    #   Memprof.stop
    def stats(path_or_io = nil) = write_stats(session, path_or_io, caller: caller_locations(1, 1)&.first)

    # Like {stats}, but then forgets these objects; tracking continues.
    #
    # @param path_or_io (see #stats)
    # @return [nil]
    # @raise (see #stats)
    # @example
    #   Memprof.start
    #   Memprof.stats!
    #   Memprof.stop
    def stats!(path_or_io = nil)
      current = session
      write_stats(current, path_or_io, caller: caller_locations(1, 1)&.first)
      current.clear
      nil
    end

    # Tracks the objects that a block allocates, and writes those alive at its end like {stats}. Always stops,
    # even if the block raises. Inside another {track}, or after {start}, it shows only its own block's
    # objects and does not affect the outer tracking.
    #
    # @param path_or_io (see #stats)
    # @param scope [Symbol] `:process`, or `:thread` for the objects of the calling thread and of those it
    #   starts
    # @param sample (see #start)
    # @param stack (see #start)
    # @yield the code to track
    # @return [Object] the block's value
    # @raise [ArgumentError] without a block, or if an option is invalid
    # @raise [Error] if the file can't be written
    # @example
    #   Memprof.track { 12.times { "abc" } }
    def track(path_or_io = nil, scope: :process, sample: nil, stack: 1, &block)
      raise ArgumentError, "block required" unless block_given?

      show = ->(session) { write_stats(session, path_or_io) }
      show_after(show, scope: scope, sample: sample, stack: stack, &block)
    end

    # Marks the end of the boot for `memprof run --after-boot`: tracking begins. Does nothing otherwise.
    #
    # @return [Boolean] whether tracking began
    # @example
    #   Memprof.booted # => false
    def booted = defined?(Autorun.booted) ? Autorun.booted : false

    # Runs a block and reports what it allocated and retained. GC remains enabled.
    #
    # @param scope (see #track)
    # @param sample (see #start)
    # @param stack (see #start)
    # @param peak [Boolean] also determine when memory peaked, and at which sites: {Report#peak},
    #   {Report::Site#peak_bytes}
    # @param filters [Hash] `top:`, `allow_files:`, `ignore_files:`, `trace:`, `internal:`, see
    #   {Report#initialize}
    # @yield the code to measure
    # @return [Report]
    # @raise [ArgumentError] without a block, or if an option is invalid
    # @example
    #   report = Memprof.report(internal: false) { Array.new(10) { Object.new } }
    #   report.total_allocated # => 11
    #   puts report
    def report(scope: :process, sample: nil, stack: 1, peak: false, **filters)
      raise ArgumentError, "block required" unless block_given?

      prepare(:Report)
      Report.check_filters(**filters)
      Session.run(scope: scope, sample: sample, stack: stack, strings: true) do |session|
        session.watch_peak if peak
        # References that the block leaves on the machine stack would make objects count as retained.
        Native.run_deep do
          yield
          nil
        end
        session.finish
        session.collect
        session.report(**filters)
      end
    end

    # Writes each live tracked object as JSON: with a block the objects it allocated that are alive at its
    # end, without one those tracked since {start}. A block's tracking always stops, as in {track}; if the
    # block raises, nothing is written.
    #
    # A file has one line for each object, and a first and a last line about the dump. On standard output the
    # objects are indented for people, unless the dump is binary or compressed: that is written unchanged, but
    # not to a terminal. A file is written as `PATH.IN_PROGRESS`, with mode 0600, and renamed when it is
    # complete. A device or a pipe is written to; a link to one is refused.
    #
    # @param path_or_io [String, Pathname, IO, nil] a file to replace, or an IO; standard output if nil
    # @param format [Symbol, nil] `:memprof`, `:objspace`, `:binary` or `:heap_dump`; if nil, `:binary` for a
    #   file that ends with `.memprof`, else `:memprof`
    # @param values [Symbol] how to write strings and the like: `:full`, `:truncate`, `:hash` (a hash that
    #   equal values share), `:length` or `:none`
    # @param compression [Symbol, nil] `:none`, `:gzip` or `:zstd`; if nil, according to the file extension
    # @param scope (see #track)
    # @param sample (see #start)
    # @param stack (see #start)
    # @yield the code to track
    # @return [Object, Dump::Result] the block's value; without a block, facts about the dump
    # @raise [NotRunning] without a block, if nothing is tracked
    # @raise [ArgumentError] if an option is invalid
    # @raise [Error] if it can't be written
    # @example
    #   Memprof.dump("objects.json") { @kept = Array.new(3) { "abc".dup } }
    def dump(path_or_io = nil, format: nil, values: :full, compression: nil, scope: :process, sample: nil,
      stack: 1, &block)
      options = dump_options(path_or_io, format: format, values: values, compression: compression)
      return Dump.session(path_or_io, session, options) unless block_given?

      show = ->(session) { Dump.session(path_or_io, session, options) }
      show_after(show, scope: scope, sample: sample, stack: stack, &block)
    end

    # Writes every object of the heap, with all references and their labels, and with file, line, method,
    # generation and time for tracked objects. Neither starts nor stops tracking.
    #
    # @param path_or_io [String, Pathname, IO, nil] a file to replace, or an IO; standard output if nil. One
    #   line for each object
    # @param format (see #dump)
    # @param values (see #dump)
    # @param compression (see #dump)
    # @param fork [Boolean] let a forked child write, while other threads continue; returns when it is done
    # @param gc [Boolean] run the GC first. Not by default: its duration grows with the heap, and garbage is
    #   of interest, too
    # @return [Dump::Result] facts about the dump
    # @raise [ArgumentError] if an option is invalid
    # @raise [Error] if it can't be written
    # @example
    #   Memprof.dump_all("heap.json.gz")
    #   Memprof.dump_all("heap.memprof", values: :hash, fork: true)
    def dump_all(path_or_io = nil, format: nil, values: :full, compression: nil, fork: false, gc: false)
      options = dump_options(path_or_io, format: format, values: values, compression: compression)
      GC.start if gc
      Dump.heap(path_or_io || $stdout, options, fork: fork)
    end

    # Runs a block repeatedly, and reports the sites whose live objects grow from run to run.
    #
    # While something grows, the block runs on, to distinguish a filling cache from a leak.
    #
    # @param times [Integer] counted runs, at least 4
    # @param warmup [Integer] runs before those, to fill caches
    # @param max_times [Integer, nil] maximum counted runs while something grows; `12 * times` if nil
    # @yield the code to measure
    # @return [Growth]
    # @raise [ArgumentError] without a block, or if a number is invalid
    # @example
    #   log = []
    #   puts Memprof.growth { log << "line".dup }
    def growth(times: 20, warmup: 3, max_times: nil, &block)
      prepare(:Growth)
      Growth.measure(times: times, warmup: warmup, max_times: max_times, &block)
    end

    # Counts the objects of the process by type, as ObjectSpace.count_objects does, and those of some classes
    # by class.
    #
    # @param namespaces [Array<Module, String, Symbol>] classes and modules, or their names. Objects of `Foo`
    #   and of the classes in it (`Foo::Bar`) are counted by class, whatever their type
    # @param gc [Boolean] run the GC first; then the first key is `"gc_ran"`
    # @return [Hash{String => Integer, Hash}] `"total_slots"`, `"free_slots"`, `"basic_types"` (existing
    #   types, such as `"T_STRING"`), `"user_types"` (most objects first)
    # @raise [ArgumentError] if a namespace has no name
    # @example
    #   Shelf = Class.new
    #   kept = Array.new(3) { Shelf.new }
    #   Memprof.count_objects(Shelf)["user_types"] # => { "Shelf" => 3 }
    def count_objects(*namespaces, gc: false)
      prepare(:Census)
      Census.count(namespaces, gc: gc)
    end

    # Ruby's compiled code, with its bytes: methods, blocks, class bodies and files. Reads the heap directly,
    # so it creates no RubyVM::InstructionSequence.
    #
    # @param gc [Boolean] run the GC first, to exclude code that is no longer referenced
    # @return [Iseqs]
    # @example
    #   puts Memprof.iseqs
    def iseqs(gc: false)
      prepare(:Iseqs)
      GC.start if gc
      Iseqs.new(Native.iseqs)
    end

    # Where the memory of a process goes: slots, memory of objects outside of them, instruction sequences,
    # native memory not owned by Ruby objects, free memory not returned to the system, stacks, mapped files.
    # The items add up to the RSS.
    #
    # @param pid [Integer, nil] another process, for which only /proc is read. `memprof memory` asks a process
    #   that has loaded `memprof/signal` for the rest
    # @return [Memory]
    # @raise [Error] without /proc, if the process is gone, or if it belongs to another user
    # @example
    #   puts Memprof.memory
    def memory(pid = nil)
      prepare(:Memory)
      Memory.of(pid)
    end

    # The memory of a process and of those forked from it, such as a server and its workers: of each one, the
    # part that no other process shares, and the total.
    #
    # @param pid [Integer, nil] the process, such as the master of a puma in cluster mode; by default, the
    #   cluster of this process
    # @return [Memory::Cluster]
    # @raise [Error] without /proc, if the process is gone, or if it belongs to another user
    # @example
    #   puts Memprof.cluster_memory
    def cluster_memory(pid = nil)
      prepare(:Memory)
      Memory::Cluster.of(pid) { |process| Memory.of(nil) if process == Process.pid }
    end

    private

    def prepare(part)
      Support.check_ractor
      Loading.part(part)
    end

    def session
      raise NotRunning, "objects are not tracked; call Memprof.start first" unless running?

      @session
    end

    # Runs a block in its own session, passes that to `show`, returns the block's value.
    def show_after(show, scope:, sample:, stack:)
      Session.run(scope: scope, sample: sample, stack: stack) do |session|
        Native.note_for(self, session) if scope == :process
        value = yield
        session.finish
        # Stopped inside the block: nothing is tracked any longer, so there is nothing to show.
        show.call(session) unless session.closed?
        value
      ensure
        @session = nil if @session.equal?(session)
      end
    end

    # Checked before anything is tracked: an invalid option must not waste the run.
    def dump_options(path_or_io, **options)
      prepare(:Dump)
      path = path_or_io && Output.file_path(path_or_io)
      Dump::Options.new(path, **options).tap { |checked| checked.check_target(path_or_io || $stdout) }
    end

    def write_stats(session, path_or_io, caller: nil)
      Native.quiet do
        lines = session.stats_lines(caller: caller)
        text = lines.empty? ? "" : "#{lines.join("\n")}\n"
        Output.write(path_or_io || $stdout, text)
      end
      nil
    end
  end
end
