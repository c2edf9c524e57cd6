# frozen_string_literal: true

require_relative "bracket"
require_relative "byte_size"
require_relative "errors"
require_relative "native"
require_relative "output"
require_relative "support"
require_relative "malloc/environment"
require_relative "malloc/heap_page"
require_relative "malloc/location"

module Memprof
  # Records malloc by line: which lines allocate memory outside of Ruby's heap, and which of it is still live.
  # It covers memory that ObjectSpace misses: C extensions, buffers of strings and arrays, Fiddle.malloc.
  #
  # It starts and stops in a running process; nothing is preloaded. The location of a block is the line of
  # Ruby that the thread ran, as `file:line`, or for a thread that runs no Ruby the native code that called
  # malloc, as `/lib/libpq.so.5(+0x1f3a2) [0x7f3a1c05e3a2]`. Blocks allocated before the start are unknown,
  # and are freed as always.
  #
  # The interface is that of mwrap (https://80x24.org/mwrap/). Sizes are requested bytes, ages are counted in
  # GC runs.
  #
  # It records calls to malloc, calloc, realloc, reallocarray, free, posix_memalign, aligned_alloc, memalign
  # and valloc wherever they go through an object's function table, including libc's own; not those of a
  # program or library with a built-in allocator, and not mmap.
  #
  # `MEMPROF_MALLOC=dump_path:FILE,dump_min:BYTES ruby -rmemprof/malloc app.rb` records a whole program, and
  # appends the lines of {dump} to the file at exit; `dump_fd:N` writes them to a descriptor (default:
  # stderr). `sample:512KiB` records samples; `record:FILE`, optionally with `stack:N`, `native:true`,
  # `addresses:true` or `sample:SIZE`, does the same as {record}.
  #
  # @example Find the line that leaks
  #   require "memprof/malloc"
  #   require "fiddle"
  #
  #   Memprof::Malloc.start
  #   leaked = Array.new(100) { Fiddle.malloc(1024) }
  #   Memprof::Malloc.stop
  #   location = Memprof::Malloc.locations.max_by(&:live_bytes)
  #   location.live_bytes >= 102_400 # => true
  module Malloc
    autoload :InterpreterFunctions, "#{__dir__}/malloc/interpreter_functions"
    autoload :Recording, "#{__dir__}/malloc/recording"
    autoload :Stacks, "#{__dir__}/malloc/stacks"
    autoload :MallocText, "#{__dir__}/malloc/malloc_text"

    MAX_SAMPLE = (1 << 32) - 1
    MAX_STACK = 512
    RUNS = "a recording of malloc runs already"
    private_constant :MAX_SAMPLE, :MAX_STACK, :RUNS

    class << self
      # Starts recording; the counts of an earlier recording are dropped.
      #
      # With `sample:` it only records samples, one in so many bytes on average, at a fraction of the cost.
      # Then all counts are unbiased estimates; {Location#each} yields the sampled blocks.
      #
      # With `stack:` or `native:` it also records callers, for {tree} and {write}.
      #
      # @param sample [Integer, String, nil] bytes between samples (`"512 KiB"`); nil records all blocks
      # @param stack [Integer] calling frames stored per allocation, 1 to 512; with 1 only the allocating line
      # @param native [Boolean] include native frames (see {record})
      # @return [Boolean] false if a recording is already running
      # @raise [ArgumentError] if `sample` is not a size between 1 B and 4 GiB, or `stack` is out of range
      # @raise [Unsupported] if calls can't be interposed: on systems other than Linux on x86-64 and aarch64,
      #   and if Ruby has a built-in allocator
      # @example
      #   Memprof::Malloc.start # => true
      #   Memprof::Malloc.stop
      def start(sample: nil, stack: 1, native: false)
        Support.check_ractor
        check_stack(stack)
        bytes = sample_bytes(sample)
        InterpreterFunctions.find if native
        Native::Malloc.start(bytes, stack, native ? true : false)
      end

      # Records as {start} does, and writes each allocation and each free to a file as it happens, with the
      # call stack of Ruby lines. {Recording} and `memprof malloc FILE` read it: even while it grows, and
      # after the process was killed. docs/dump-formats.md describes the format.
      #
      # With a block the recording stops at its end; without one at {stop}, or at process exit. If the file
      # can't be written any longer, for example because the disk is full, the file ends there, the program
      # continues, and {stop} warns. A forked child does not write to the file.
      #
      # @param path [String, Pathname] created, or overwritten
      # @param sample [Integer, String, nil] bytes between samples (`"512 KiB"`): then counts are estimates,
      #   and temporary blocks are unknown; nil records all blocks
      # @param stack [Integer] calling frames stored per allocation, 1 to 512; with 1 only the allocating line
      # @param native [Boolean] include native frames, like heaptrack: functions of C extensions, of libraries
      #   and of Ruby itself, with Ruby's frames where the VM runs them
      # @param addresses [Boolean] also the address of each block, from which {Core.open} knows which line
      #   allocated a block of a core file
      # @yield the code to record
      # @return [Object, nil] the block's value
      # @raise [ArgumentError] if `sample` or `stack` is out of range
      # @raise [Error] if a recording is already running, or the file can't be written
      # @raise [Unsupported] as for {start}
      # @example
      #   Memprof::Malloc.record("import.malloc") { Array.new(100) { "x" * 10_000 } }
      #   puts Memprof::Malloc::Recording.new("import.malloc")
      def record(path, sample: nil, stack: 64, native: false, addresses: false)
        Support.check_ractor
        wanted = settings(sample, stack, native, addresses)
        raise Error, RUNS if running?

        file = create(path)
        @stops_at_exit ||= at_exit { stop }
        start = -> { write_to(file, path, wanted) }
        return start.call && nil unless block_given?

        Bracket.run(start, -> { stop }) { yield }
      end

      # Like {record} without a block, to an open file, which it closes.
      #
      # @api private
      def record_to(file, sample: nil, stack: 64, native: false)
        write_to(file, "the recording", settings(sample, stack, native, false))
      end

      # Stops recording. The recorded data is available until the next start.
      #
      # @return [Boolean] false if no recording is running
      # @example
      #   Memprof::Malloc.stop # => false
      def stop
        Support.check_ractor
        Native::Malloc.stop
      rescue Error => e
        warn "memprof: the file of the recording of malloc ends early: #{e.message}"
        true
      end

      # @return [Boolean] whether a recording is running
      # @example
      #   Memprof::Malloc.running? # => false
      def running? = Native::Malloc.running?

      # @return [Integer, nil] bytes between samples; nil if all blocks are recorded
      # @example
      #   Memprof::Malloc.start(sample: "512 KiB")
      #   Memprof::Malloc.sample # => 524288
      #   Memprof::Malloc.stop
      def sample = Native::Malloc.sample

      # Calls the block with each location and its counts, in no particular order. Locations that allocated no
      # more than `min` bytes are left out.
      #
      # @param min [Integer] bytes
      # @yieldparam location [String] `file:line`, or native code with its address in brackets
      # @yieldparam total [Integer] bytes allocated
      # @yieldparam allocations [Integer]
      # @yieldparam frees [Integer]
      # @yieldparam age_total [Integer] sum of the ages of freed blocks, in GC runs
      # @yieldparam max_lifespan [Integer] the maximum of these ages
      # @return [nil, Enumerator] an Enumerator without a block
      # @example
      #   Memprof::Malloc.each(1_000_000) { |location, total| puts "#{location} #{total}" }
      def each(min = 0)
        return enum_for(:each, min) unless block_given?

        sites.each do |location, (allocations, total, frees, _freed, age_total, max_lifespan)|
          yield location, total, allocations, frees, age_total, max_lifespan if total > min
        end
        nil
      end

      # @param location [String] `file:line`, or text with a native address in brackets (`[0x7f3a1c05e3a2]`)
      # @return [Location, nil] nil if nothing was allocated there
      # @example
      #   Memprof::Malloc["app.rb:12"] # => nil
      def [](location)
        Location.new(location) if Native::Malloc.counts(location)
      end

      # @return [Array<Location>] all locations that allocated something, in no particular order
      # @example
      #   Memprof::Malloc.locations.sum(&:live_bytes)
      def locations = sites.map { |name, _| Location.new(name) }

      # Does not record this thread's allocations in the block. Calls nest. A fiber that leaves the block
      # leaves the thread in this state until it comes back, or is garbage collected.
      #
      # @yieldparam depth [Integer] 1 in the outermost call
      # @return [Object] the block's value
      # @example
      #   Memprof::Malloc.quiet { |depth| depth } # => 1
      def quiet(&)
        raise ArgumentError, "no block given" unless block_given?

        Native::Malloc.quiet(&) # naming the block would allocate a Proc, which counts
      end

      # Zeroes all counts. Live blocks remain known, and count as freed later.
      #
      # @return [nil]
      # @example
      #   Memprof::Malloc.reset
      def reset
        Native::Malloc.reset
        nil
      end
      alias clear reset

      # @return [Integer] bytes allocated since the start or the last {reset}
      # @example
      #   Memprof::Malloc.total_bytes_allocated.positive?
      def total_bytes_allocated = sites.sum { |_, counts| counts[1] }

      # @return [Integer] bytes of recorded blocks that were freed since the start or the last {reset}
      # @example
      #   Memprof::Malloc.total_bytes_freed <= Memprof::Malloc.total_bytes_allocated
      def total_bytes_freed = sites.sum { |_, counts| counts[3] }

      # @return [Integer] blocks that could not be recorded: a signal handler allocated them inside the
      #   recorder, or memory was exhausted
      # @example
      #   Memprof::Malloc.missed # => 0
      def missed = Native::Malloc.missed

      # The pages of Ruby's heap that have objects. Ruby maps them with mmap, so their memory has no location,
      # and returns a page once all its slots are free: a page with few objects is fragmentation.
      #
      # @return [Array<HeapPage>]
      # @raise [Error] if the heap can't be walked
      # @example
      #   Memprof::Malloc.heap_pages.count { |page| page.used * 10 < page.slots }
      def heap_pages = Native.heap_pages.map { |page| HeapPage.new(*page) }

      # Writes a line for each location in mwrap's format, `"%16zu %12zu %s\n"`: bytes allocated, allocations,
      # location. Locations that allocated no more than `min` bytes are left out.
      #
      # @param io [IO, #write]
      # @param min [Integer] bytes
      # @return [nil]
      # @raise [TypeError] if `io` can't be written to
      # @example
      #   Memprof::Malloc.dump($stderr, 1_000_000)
      def dump(io = $stderr, min = 0)
        raise TypeError, "#{io.inspect} is not an IO" unless io.respond_to?(:write)

        lines = each(min).map { |location, total, calls| format("%16d %12d %s\n", total, calls, location) }
        io.write(lines.join)
        nil
      end

      # A table of the locations, most live bytes first.
      #
      # @param limit [Integer] maximum number of locations
      # @param color [Boolean]
      # @return [String]
      # @example
      #   puts Memprof::Malloc.table(limit: 5)
      def table(limit: 20, color: false) = MallocText.new(limit: limit).to_s(color: color)

      # The stacks that allocated since the start, summed up as a tree, like {Recording#tree}.
      #
      # @param direction [Symbol] `:top_down` from the outermost frames to their callees, `:bottom_up` from
      #   the allocating lines to their callers
      # @param value [Symbol] `:live` or `:allocated` bytes
      # @param min [Float] minimum share of all bytes for a row
      # @return [Array<Hash{Symbol => Object}>]
      # @raise [ArgumentError] for another direction or value
      # @example
      #   Memprof::Malloc.start(stack: 64)
      #   text = "x" * 10_000
      #   Memprof::Malloc.stop
      #   Memprof::Malloc.tree(:bottom_up).first[:bytes] >= text.size # => true
      def tree(direction = :top_down, value: :live, min: 0.01) = Stacks.new(direction, value, min).rows

      # {tree} for people.
      #
      # @param color [Boolean]
      # @param (see #tree)
      # @return [String]
      # @raise (see #tree)
      # @example
      #   puts Memprof::Malloc.tree_text(:bottom_up)
      def tree_text(direction = :top_down, value: :live, min: 0.01, color: false)
        Stacks.new(direction, value, min).to_s(color: color)
      end

      # Writes the stacks that allocated since the start in another tool's format (see {Recording#write}).
      #
      # @param path_or_io [String, Pathname, IO]
      # @param format [Symbol] `:collapsed`, `:speedscope`, `:firefox` or `:pprof`
      # @param value [Symbol] `:live` or `:allocated`: the value in formats with one number per stack
      # @return [void]
      # @raise [ArgumentError] for another format or value
      # @raise [Error] if the file can't be written
      # @example
      #   Memprof::Malloc.write("malloc.folded", format: :collapsed)
      def write(path_or_io, format:, value: :live) = Stacks.write(path_or_io, format, value)

      # @api private
      # @return [Array] locations with their counts
      def sites = Native::Malloc.sites

      private

      def check_stack(stack)
        return if stack.is_a?(Integer) && stack.between?(1, MAX_STACK)

        raise ArgumentError, "stack must be 1 to #{MAX_STACK}, not #{stack.inspect}"
      end

      def sample_bytes(sample)
        bytes = sample && ByteSize.read(sample)
        return bytes if bytes.nil? || bytes.between?(1, MAX_SAMPLE)

        raise ArgumentError, "sample must be 1 B to 4 GiB, not #{sample.inspect}"
      end

      def settings(sample, stack, native, addresses)
        check_stack(stack)
        InterpreterFunctions.find if native
        [sample_bytes(sample), stack, native ? true : false, addresses ? true : false]
      end

      def create(path)
        path = path.to_path if path.respond_to?(:to_path)
        File.open(path, File::WRONLY | File::CREAT | File::TRUNC | File::BINARY, 0o600)
      rescue SystemCallError => e
        raise Output.failure(path, e)
      end

      # The recorder duplicates the descriptor.
      def write_to(file, path, settings)
        command = $PROGRAM_NAME.dup.force_encoding(Encoding::UTF_8).scrub
        # Not `*settings`: YJIT of Ruby 4.0 aborts when it compiles a splat to more than five arguments.
        sample, stack, native, addresses = settings
        Native::Malloc.record(file.fileno, command, sample, stack, native, addresses) || raise(Error, RUNS)
      rescue SystemCallError => e
        raise Output.failure(path, e)
      ensure
        file.close
      end
    end
  end
end

Memprof::Malloc::Environment.start(ENV.fetch("MEMPROF_MALLOC", nil))
