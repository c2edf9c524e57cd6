# frozen_string_literal: true

require_relative "errors"
require_relative "loading"
require_relative "native"
require_relative "output"
require_relative "process_copying"
require_relative "version"
require_relative "dump"

module Memprof
  # A core file, or the memory of a process, to query: the process's glibc malloc blocks, which of them are
  # used, free or leaked, what anchors them, and which Ruby objects own them. The process need not have loaded
  # anything, and need not be a Ruby; symbols are not needed.
  #
  # A reference is an aligned word that points anywhere into a block, or to the beginning of an object. A used
  # block is *anchored* if it is reachable from registers, stacks or variables, through blocks and objects; it
  # is *garbage* if it is reachable only from unanchored objects, and *leaked* if it is not reachable even
  # from those.
  #
  # Sets, by name: `allocations`, `used`, `free`, `threadcached`, `anchored`, `anchorpoints`, the last two by
  # kind (`stackanchored`, `registeranchorpoints`, `staticanchored`, `externalanchored`, `threadonlyanchored`,
  # ...), `leaked`, `unreferenced`, `garbage`, `owned` (by Ruby objects), `native`; with `of: ADDRESS` also
  # `allocation`, `incoming`, `exactincoming`, `outgoing`, `freeoutgoing`, `chain` (with `offset:`) and
  # `reversechain` (with `offset:` and `target_offset:`).
  #
  # Restrictions, each an option: `signature:` (an address; `"%RubyString"` for blocks of Strings,
  # `"%VectorBody"` for those of C++ vectors, `"-"` for those without a signature, `"?"` without a pattern
  # either), `min_size:`, `max_size:`, `min_incoming:`, `max_incoming:`, `min_outgoing:`, `max_outgoing:`,
  # `min_free_outgoing:`, `max_free_outgoing:`. Sizes are in bytes; addresses are Strings such as
  # `"0x7f12a0"`. Reference counts may be limited to one signature: `min_incoming: { "%RubyArray" => 100 }`.
  #
  # `extend:` adds blocks along references: an Array of rules, `"->"` (what the blocks reference, directly or
  # not), `"~>"` (the leaked part of that), `"<-"` (their referrers), or with signatures, offsets and states:
  # `"%RubyArray@0->%RubyString"`, `"->=>near"`. With `comment_extensions: true`, {#each} adds which reference
  # led to each block.
  #
  # With `recording:`, a malloc recording of that process with addresses ({Malloc.record}), blocks also have
  # the line that allocated them: see {describe}, {explain}, {each} and {summarize}.
  #
  # @example What a process leaked in C
  #   Memprof::Core.of do |core|
  #     p core.count(:leaked)
  #     core.each(:leaked, min_size: 1024) { |block| p block[:address], block[:size] }
  #   end
  # @example Which lines allocated it
  #   Memprof::Malloc.record("app.malloc", addresses: true)
  #   Memprof::Core.of(recording: "app.malloc") do |core|
  #     core.summarize(:leaked)[:places].each { |row| p row[:allocated_at], row[:bytes] }
  #   end
  #   Memprof::Malloc.stop
  class Core
    autoload :BlockOrigins, "#{__dir__}/core/block_origins"

    # Number of blocks fetched at once.
    PIECE = 10_000
    # Maximum number of copies of a process whose heap looks damaged in each of them.
    COPIES = 3
    MAGIC = "\x7fELF".b.freeze
    private_constant :PIECE, :COPIES, :MAGIC

    class << self
      include ProcessCopying

      # @param path [String, Pathname] an ELF core file of a 64-bit process, written by the kernel or gcore
      # @param recording [String, Pathname, nil] a malloc recording of the process, with addresses. Events
      #   after the time of the core file are ignored
      # @return [Core]
      # @raise [Error] if it can't be read, or isn't a core file; if the recording is of another process, or
      #   has no addresses
      # @example Where a core file is
      #   Memprof::Core.open("core.4711").count(:leaked) if File.exist?("core.4711")
      def open(path, recording: nil)
        path = File.path(path)
        native, time = File.open(path, "rb") { |file| [Native::Image.open(file.fileno), file.mtime] }
        core = new(native)
      rescue SystemCallError, Error => e
        raise Error, "cannot read #{path}: #{Output.reason(e)}", cause: nil
      else
        BlockOrigins.add(native, recording, time: time) if recording
        core
      end

      # @api private
      # @return [Boolean] whether a file begins like an ELF file
      def core?(path)
        File.file?(path) && File.binread(path, MAGIC.bytesize) == MAGIC
      rescue SystemCallError
        false
      end

      # The memory of a running process instead of a core file: of a copy, for which the process is paused for
      # some milliseconds. Nothing is loaded into it. Linux only; another process must run as the same user,
      # or memprof as root, with permission to trace it (ptrace).
      #
      # All threads of another process are stopped meanwhile, so their registers are known. This process's own
      # other threads are not stopped; if one was running, its whole stack counts as external memory.
      #
      # @param pid [Integer] the process; by default, this one
      # @param recording (see #open)
      # @yieldparam core [Core] the copy, which is released at the end of the block
      # @return [Object] what the block returns
      # @raise [Error] if it can't be copied, or inside another `of` block; for the recording see {open}
      # @example
      #   Memprof::Core.of { |core| puts core.count(:used) }
      def of(pid = Process.pid, recording: nil)
        pause, image = copied(pid)
        core = new(image, pause, pid)
        begin
          BlockOrigins.add(image, recording, time: Time.now, pid: pid) if recording
          yield core
        ensure
          core.finish
          Native.drop_snapshot
        end
      end

      private

      # The pause in seconds, and the memory.
      def copied(pid)
        raise Unsupported, "processes are copied on Linux only" unless Native.respond_to?(:image_of_snapshot)

        (1..).each do |attempt|
          threads = Dir.children("/proc/#{pid}/task").map(&:to_i).sort
          kind, image = Native.image_of_snapshot(pid, threads[attempt % threads.size]) || next_of_tracer
          unless kind.is_a?(Symbol)
            return kind, image unless image.damaged? && attempt < COPIES

            # A thread may have been inside malloc.
            Native.drop_snapshot
            kind = :busy
          end
          raise Error, "process #{pid}: #{remedy(kind, image, pid)}" unless again?(kind, attempt)
        end
      rescue Errno::ENOENT, Errno::ESRCH
        raise Error, "no such process: #{pid}", cause: nil
      end
    end

    # @return [Float, nil] seconds for which the process was paused; nil for a core file
    # @example
    #   Memprof::Core.of { |core| core.pause < 1 }
    attr_reader :pause

    # @api private
    def initialize(native, pause = nil, pid = nil)
      @native = native
      @pause = pause
      @pid = pid
      @time = Time.now
    end

    # @api private
    def finish
      @native = nil
    end

    # The process, and where its writable memory goes:
    #
    # - `:count` and `:bytes` of `:used`, `:free`, `:thread_cached`, `:owned`, `:native`, `:garbage`,
    #   `:leaked` and `:unreferenced` blocks, of `:arenas`, `:mapped` blocks, `:ruby_pages`, `:stacks`,
    #   `:statics`, and `:external` memory without its `:zeros` (bytes in pages of zeros);
    # - `:writable`, the total, and `:tops`, the free ends of arenas, in bytes;
    # - `:command`, `:pid`, `:signal`, `:machine`, `:threads`, `:allocator`;
    # - `:missing` bytes that were cut off the file, `:corruptions` of the heap, its `:skipped` bytes;
    # - `:unknown`: nil, or why blocks are unknown: then all their counts are nil; `:uncounted`: nil, or an
    #   allocator besides glibc's whose blocks are not counted;
    # - `:recording`: nil, or numbers of used blocks that it has (`:known`) and lacks (`:unknown`); whether it
    #   `:ended` before; `:sample` (bytes between samples, or nil) and `:damaged_at`.
    #
    # @return [Hash{Symbol => Object}]
    # @example
    #   Memprof::Core.of { |core| core.overview[:allocator] }
    def overview = ask(:overview)

    # `:missing`, `:uncounted`, `:corruptions` and `:skipped` of {#overview}, at once.
    # @api private
    def damage = ask(:damage)

    # @param set [Symbol, String] see {Core}
    # @param restrictions [Hash] see {Core}
    # @return [Hash{Symbol => Integer}] `:count` and `:bytes`
    # @raise [ArgumentError] if there is no such set, restriction, signature or pattern
    # @raise [Unsupported] if the process uses an allocator other than glibc's: its blocks are unknown
    # @example
    #   Memprof::Core.of { |core| core.count(:used, min_size: 1 << 20) }
    def count(set = :allocations, **restrictions) = ask(:count, selection(set, restrictions))

    # Blocks grouped by what identifies them: `:rows` with `:kind` (`signature`: the first word points to
    # constant data, at `:place`; `pattern`: a Ruby object owns it), `:name`, `:count` and `:bytes`; the
    # others, `:unrecognized`, by `:sizes`. For blocks owned by Ruby objects, `:owners`: rows with the owners'
    # `:class`, `:count`, `:bytes` and `:sizes`. With a recording also `:places`: rows of `:allocated_at`
    # (`"app.rb:12"`, or native code), `:method` if known, `:count` and `:bytes`; and the used blocks missing
    # from the recording (`:unknown`).
    #
    # @param set (see #count)
    # @param restrictions (see #count)
    # @return [Hash{Symbol => Object}]
    # @raise (see #count)
    # @example
    #   Memprof::Core.of { |core| core.summarize(:leaked)[:sizes].first }
    def summarize(set = :used, **restrictions) = ask(:summarize, selection(set, restrictions))

    # Each block, by address: `:address`, `:size`, `:kind` (`used`, `free`, `thread_cached`) and `:signature`;
    # if a recording has it, `:allocated_at` (`"app.rb:12"`, or native code where no Ruby ran) and `:method`.
    # Blocks of a chain or an extended set come in the order in which they are reached; with the restriction
    # `comment_extensions: true` they have `:added` (the `:rule`, `:from` and `:to` that led to it; nil for
    # blocks of the set itself) and `:again` (what led to earlier blocks, after this one and before the next).
    #
    # @param set (see #count)
    # @param contents [Boolean] also `:words`, its contents
    # @param restrictions (see #count)
    # @yieldparam block [Hash{Symbol => Object}]
    # @return [self, Enumerator] an Enumerator without a block
    # @raise (see #count)
    # @example
    #   Memprof::Core.of { |core| core.each(:free, min_size: 1 << 20).sum { |block| block[:size] } }
    def each(set = :allocations, contents: false, **restrictions)
      return enum_for(:each, set, contents: contents, **restrictions) unless block_given?

      from = 0
      while from
        part = ask(:list, selection: selection(set, restrictions), from: from, limit: contents ? 100 : PIECE,
          contents: contents)
        part[:blocks].each { |block| yield block }
        from = part[:next]
      end
      self
    end

    # An address: `:place` (`block`, `object`, `ruby_page`, `stack`, `static`, `external`, `constant`,
    # `unmapped`) and what is known of that; for a block `:start`, `:size`, `:kind`, `:signature`, `:state`
    # (`anchored`, `garbage`, `leaked`, `unreferenced`) and `:owner`, the Ruby object that owns it, with its
    # `:type` and `:of_class`; if a recording has it, `:allocated_at` and `:method` as in {#each}.
    #
    # @param address [String, Integer]
    # @return [Hash{Symbol => Object}]
    # @example
    #   Memprof::Core.of { |core| core.describe("0x55d90dacc010")[:state] }
    def describe(address) = ask(:describe, address: address(address))

    # Like {describe}, with `:anchor`, the start of a shortest chain of references to it, and `:chain`, its
    # steps, with the `:label` of the reference from the object before, such as `"@user"`, if it has one;
    # without an anchor, with its `:referrers`, if any. If a recording has it, `:stack`: the calls that led to
    # its allocation, innermost first, such as `"import (app.rb:12)"`.
    #
    # @param address (see #describe)
    # @return [Hash{Symbol => Object}]
    # @example
    #   Memprof::Core.of { |core| core.explain("0x55d90dacc010")[:chain].map { |step| step[:address] } }
    def explain(address) = ask(:explain, address: address(address))

    # Arenas with their `:size`, `:used` and `:free` blocks, `:largest_free` block and `:top_size`, and the
    # `:mapped` blocks outside of arenas.
    #
    # @return [Hash{Symbol => Object}]
    # @example
    #   Memprof::Core.of { |core| core.arenas[:arenas].size }
    def arenas = ask(:arenas)

    # Ruby objects: `:rows` with `:type`, `:count`, slot `:bytes`, the number that is `:garbage`, and the
    # `:blocks` they own; and `:empty` slots. If blocks are unknown, `:unknown` says why, and `:garbage` and
    # `:blocks` are nil.
    #
    # @return [Hash{Symbol => Object}]
    # @example
    #   Memprof::Core.of { |core| core.objects[:rows].first[:type] }
    def objects = ask(:objects)

    # Ranges of memory with `:address`, `:size`, `:file`, `:thread`.
    #
    # @param kind [Symbol] `:stacks`, `:modules`, `:writable`, `:readonly`, `:rxonly`, `:inaccessible`
    # @return [Array<Hash{Symbol => Object}>]
    # @example
    #   Memprof::Core.of { |core| core.regions(:modules).map { |region| region[:file] } }
    def regions(kind) = ask(:regions, kind: kind)[:regions]

    # Words of memory, as far as the file contains them: up to 1 MiB.
    #
    # @param address (see #describe)
    # @param size [Integer] in bytes
    # @return [Array<String>]
    # @raise [ArgumentError] if the size is larger
    # @example
    #   Memprof::Core.of { |core| core.words("0x55d90dacc010", 16) }
    def words(address, size) = ask(:contents, address: address(address), size: size)[:words]

    # The heap of the Ruby in it, to query like that of a dump. Strings, arrays, hashes, structs and plain
    # objects are read exactly; references of other objects are words that look like addresses, labeled
    # `conservative`.
    #
    # @param ignore_stack_roots [Boolean] ignore references found only in stacks and registers
    # @param blocks [Boolean] also treat malloc blocks as objects of the type `:block`, referencing what their
    #   words look like, so that retained sizes span Ruby and C. Objects then have the size of their slots,
    #   and their contents are blocks
    # @yield (see Heap.open)
    # @yieldparam stage (see Heap.open)
    # @yieldparam done (see Heap.open)
    # @yieldparam total (see Heap.open)
    # @return [Heap]
    # @raise [Error] if there is no Ruby in it and blocks are not requested, or if they are but are unknown
    # @example
    #   Memprof::Core.of { |core| core.heap.leaks[:findings].each { |finding| puts finding[:sentence] } }
    def heap(ignore_stack_roots: false, blocks: false, &progress)
      raise_if_ended
      # Strings' contents stay in the nameless file, as in a capture.
      Dump::Spool.nameless do |file|
        Heap.new(@native.heap(file.fileno, header(blocks), !!blocks, !!ignore_stack_roots, &progress))
      end
    end

    # Writes that heap as a dump.
    #
    # @param target [String, Pathname, IO] the target; its extension selects format and compression, as in
    #   {Memprof.dump_all}
    # @param format [Symbol, nil] as in {Memprof.dump_all}
    # @param values [Symbol] contents of strings etc.: `:full`, `:truncate`, `:hash`, `:length`, `:none`
    # @param blocks (see #heap)
    # @return [Dump::Result]
    # @raise [ArgumentError] if an option is invalid
    # @raise [Error] if there is no Ruby in it, blocks are requested but unknown, or the target can't be
    #   written
    # @example
    #   Memprof::Core.of { |core| core.dump("core.memprof", values: :length).objects }
    def dump(target, format: nil, values: :full, blocks: false)
      path = Output.file_path(target)
      options = Dump::Options.new(path, format: format, values: values)
      Dump.image(target, options) { |file| write(file, options, blocks: blocks) }
    end

    # @api private
    # @return [Hash{String => Object}] counts, and what is `unknown` about this build of Ruby
    def write(file, options, blocks: false)
      raise_if_ended
      @native.dump(file.fileno, options.to_native, header(blocks), !!blocks)
    end

    # @return [String]
    def inspect = "#<#{self.class}>"

    private

    def ask(question, parameters = {})
      raise_if_ended
      Loading.json
      JSON.parse(@native.ask(question.to_s, JSON.generate(parameters)), symbolize_names: true)
    end

    # The part of a dump's header that the image doesn't have, as JSON.
    def header(blocks)
      Loading.json
      JSON.generate({ memprof: VERSION, moved: false, tracking: false, blocks: !!blocks, **measured })
    end

    # The time and the RSS of a process, and where that went.
    def measured
      memory = @pid && @native.memory_of(@pid) or return {}
      require_relative "dump/header"
      memory = JSON.parse(memory)
      { **Dump::Header.moment(@time), rss: memory["rss"], memory: memory }
    end

    def raise_if_ended
      raise Error, "the copy of the process ended with the block of Core.of" unless @native
    end

    def selection(set, restrictions)
      restrictions = restrictions.merge(of: address(restrictions[:of])) if restrictions[:of]
      { set: set, **restrictions }
    end

    def address(address) = address.is_a?(Integer) ? "0x#{address.to_s(16)}" : address.to_s
  end
end
