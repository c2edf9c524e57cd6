# frozen_string_literal: true

require_relative "../errors"
require_relative "../loading"
require_relative "../native"
require_relative "../output"
require_relative "../units"

module Memprof
  module Malloc
    # The contents of a file written by {Malloc.record}. A file that is still growing, or whose process was
    # killed, is read up to its last complete block.
    #
    # @example
    #   Memprof::Malloc.record("import.malloc") { Array.new(100) { "x" * 10_000 } }
    #   recording = Memprof::Malloc::Recording.new("import.malloc")
    #   recording.to_h[:total][:peak_bytes] >= 1_000_000 # => true
    #   recording.complete?                              # => true
    class Recording
      autoload :Comparison, "#{__dir__}/recording/comparison"
      autoload :FunctionsText, "#{__dir__}/recording/functions_text"
      autoload :RecordingText, "#{__dir__}/recording/recording_text"
      autoload :TreeText, "#{__dir__}/recording/tree_text"

      # Whether the file is a recording, or begins like one.
      #
      # @param path [String]
      # @return [Boolean]
      # @example
      #   Memprof::Malloc::Recording.file?("/dev/null") # => false
      def self.file?(path)
        File.file?(path) && File.open(path, "rb") { |file| file.read(MAGIC.bytesize) } == MAGIC
      rescue SystemCallError
        false
      end

      MAGIC = "memprof malloc 1\n".b.freeze
      FORMATS = %i[heaptrack massif collapsed speedscope firefox pprof].freeze
      VALUES = %i[peak leaked allocated].freeze
      DIRECTIONS = %i[top_down bottom_up].freeze
      MOST_MILLISECONDS = 1 << 52
      private_constant :MAGIC, :FORMATS, :VALUES, :DIRECTIONS, :MOST_MILLISECONDS

      # @param path [String, Pathname]
      # @param from [Numeric] seconds after the start: calls, temporary blocks and the peak are counted from
      #   there on; blocks live then remain live. To a tenth of a second
      # @param to [Numeric, nil] seconds after the start at which the recording is assumed to end
      # @param suppressions [String, nil] known leaks, which do not count as live at the end, in
      #   LeakSanitizer's syntax: one per line, such as `leak:libpq.so`, with a pattern for a function, a file
      #   or an object in any frame of the stack
      # @raise [ArgumentError] if a suppression is invalid
      # @raise [Error] if the file can't be read, or is not a malloc recording
      # @example
      #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
      #   Memprof::Malloc::Recording.new("import.malloc", suppressions: "leak:config/boot.rb")
      def initialize(path, from: 0, to: nil, suppressions: nil)
        Loading.json
        @path = path
        milliseconds = ->(seconds) { (Float(seconds) * 1000).round.clamp(0, MOST_MILLISECONDS) }
        range = { from_ms: milliseconds.call(from), to_ms: to && milliseconds.call(to) }
        suppressions = suppressions.to_s
        raise ArgumentError, "suppressions are not valid text" unless suppressions.valid_encoding?

        @selection = JSON.generate(**range, suppressions: suppressions)
        @summary = ask { |file| Native.sum_up_recording(file, @selection) }
      end

      # @return [Boolean] false if the recording is running, its process was killed, or the file is damaged
      # @example
      #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
      #   Memprof::Malloc::Recording.new("import.malloc").complete?
      def complete? = @summary[:complete] && @summary[:damaged_at].nil?

      # @return [Integer, nil] bytes between samples, on average: then all counts are estimates; nil if all
      #   blocks were recorded
      # @example
      #   Memprof::Malloc.record("import.malloc", sample: "16 KiB") { "x" * 10_000 }
      #   Memprof::Malloc::Recording.new("import.malloc").sample # => 16384
      def sample = @summary[:sample]

      # @return [String] for the console
      # @example
      #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
      #   p Memprof::Malloc::Recording.new("import.malloc")
      def inspect
        peak, leaked = @summary[:total].values_at(:peak_bytes, :leaked_bytes).map { |size| Units.bytes(size) }
        facts = ["#{@path}: #{peak} live at the peak", "#{leaked} at the end", Units.sampled(sample)]
        "#<#{self.class} #{facts.compact.join(", ")}>"
      end

      # All data of the recording. Sizes are in bytes.
      #
      # - `:command`, `:pid`, `:started` (milliseconds since 1970), `:ms` (duration), `:missed` (blocks that
      #   could not be recorded), `:complete`, `:damaged_at` (byte of the file, or nil);
      # - `:sample`: nil, or bytes between samples: then all counts are estimates, and `:temporary` is 0, as
      #   it is unknown;
      # - `:addresses`: whether blocks have addresses;
      # - `:total`: `:allocations`, `:allocated_bytes`, `:temporary` (blocks freed before anything else was
      #   allocated or freed), `:peak`, `:peak_bytes` (live at the peak), `:leaked`, `:leaked_bytes` (live at
      #   the end);
      # - `:peak_ms`, `:peak_rss`: the time when most bytes were live, and the maximum RSS;
      # - `:locations`: the same as `:total` for each `:location`, at the overall peak;
      # - `:callers`: whether there are callers (see {tree});
      # - `:suppressed`, `:suppressed_bytes`: blocks live at the end that are known leaks and don't count;
      # - `:sizes`: `:allocations` and `:allocated_bytes` of blocks `:up_to` a size;
      # - `:timeline`: `:ms`, `:live_bytes` (maximum since the previous point), `:rss`, `:allocations` so far.
      #
      # @return [Hash{Symbol => Object}]
      # @example
      #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
      #   Memprof::Malloc::Recording.new("import.malloc").to_h[:locations].max_by { |row| row[:leaked_bytes] }
      def to_h = @summary

      # @return [String] the same as a JSON document
      # @example
      #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
      #   puts Memprof::Malloc::Recording.new("import.malloc").to_json
      def to_json(*) = JSON.generate(@summary)

      # Tables for people: the peak, blocks live at the end, most calls, most temporary blocks, sizes,
      # consumption over time.
      #
      # @param limit [Integer] rows per table
      # @param color [Boolean]
      # @return [String]
      # @example
      #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
      #   puts Memprof::Malloc::Recording.new("import.malloc").to_s(limit: 5)
      def to_s(limit: 10, color: false) = RecordingText.new(@summary, limit: limit, color: color).to_s

      # The same as Markdown.
      #
      # @param limit (see #to_s)
      # @return [String]
      # @example
      #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
      #   puts Memprof::Malloc::Recording.new("import.malloc").to_markdown(limit: 5)
      def to_markdown(limit: 10)
        RecordingText.new(@summary, limit: limit, color: false, markdown: true).to_s
      end

      # The stacks that allocated, summed up as a tree.
      #
      # Each row is a frame: its `:location` (`file:line`, or native code), the `:bytes` of all stacks that go
      # through it, and its `:depth`: the number of forks above it. A frame with all the bytes of the row
      # above has the same depth. `:level` is the number of frames above it. Children follow their parent,
      # most bytes first. If known, a line of Ruby has its `:method`, and native code its `:module` (a path),
      # the `:offset` there, its `:function`, and `:file` and `:line` of its source.
      #
      # @param direction [Symbol] `:top_down` from the outermost frames to their callees, `:bottom_up` from
      #   the allocating lines to their callers
      # @param value [Symbol] `:peak`, `:leaked` or `:allocated` bytes
      # @param min [Float] minimum share of all bytes for a row
      # @param at [String, nil] a `:location` of {to_h}: only stacks that allocated there
      # @return [Array<Hash{Symbol => Object}>]
      # @raise [ArgumentError] for another direction or value
      # @raise [Error] if the file can't be read
      # @example
      #   Memprof::Malloc.record("import.malloc") { Array.new(10) { "x" * 10_000 } }
      #   Memprof::Malloc::Recording.new("import.malloc").tree(:bottom_up).first[:bytes] >= 100_000 # => true
      def tree(direction = :top_down, value: :peak, min: 0.01, at: nil)
        check(value, VALUES, "value")
        check(direction, DIRECTIONS, "direction")
        ask { |file| Native.tree_of_recording(file, direction.name, value.name, Float(min), @selection, at) }
      end

      # The stacks as a flame graph of the frames with most bytes.
      #
      # `:names` are the distinct names of frames; `:frames` are lists of the caller's index in `:frames` (the
      # first one is the root), the name's index in `:names`, the bytes that the frame allocated itself, and
      # those including its callees. `:folded` is the number of omitted frames.
      #
      # @param value [Symbol] `:peak`, `:leaked` or `:allocated` bytes
      # @param limit [Integer] maximum number of frames
      # @return [Hash{Symbol => Object}]
      # @raise [ArgumentError] for another value
      # @raise [Error] if the file can't be read
      # @example
      #   Memprof::Malloc.record("import.malloc") { Array.new(10) { "x" * 10_000 } }
      #   Memprof::Malloc::Recording.new("import.malloc").flame[:frames].first[3] >= 100_000 # => true
      def flame(value: :peak, limit: 2000)
        check(value, VALUES, "value")
        raise ArgumentError, "limit must be a positive Integer, not #{limit.inspect}" unless limit.positive?

        ask { |file| Native.flame_of_recording(file, value.name, limit, @selection) }
      end

      # {tree} for people.
      #
      # @param color [Boolean]
      # @param (see #tree)
      # @return [String]
      # @raise (see #tree)
      # @example
      #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
      #   puts Memprof::Malloc::Recording.new("import.malloc").tree_text(:bottom_up)
      def tree_text(direction = :top_down, value: :peak, min: 0.01, color: false)
        rows = tree(direction, value: value, min: min)
        TreeText.new(@summary, rows, direction: direction, value: value, min: min, color: color).to_s
      end

      # Bytes by function: a method in a file, or a native function.
      #
      # Rows have a `:name`, such as `"import (app.rb)"`, the `:self_bytes` that the function allocated
      # itself, and the `:bytes` allocated while it ran; a stack counts once, however often it contains the
      # function. With `name` only functions of this name, with or without their location, are returned, and
      # they have `:callers` and `:callees`: rows of `:name`, and `:bytes` of the stacks in which one called
      # the other. Most bytes come first.
      #
      # @param name [String, nil]
      # @param value [Symbol] `:peak`, `:leaked` or `:allocated` bytes
      # @return [Array<Hash{Symbol => Object}>] empty if there is no function of this name
      # @raise [ArgumentError] for another value
      # @raise [Error] if the file can't be read
      # @example
      #   def parse = "x" * 10_000
      #   Memprof::Malloc.record("import.malloc") { $row = parse }
      #   recording = Memprof::Malloc::Recording.new("import.malloc")
      #   recording.functions.first[:bytes] >= 10_000                               # => true
      #   recording.functions("parse").first[:callers].first[:name].include?("block in") # => true
      def functions(name = nil, value: :peak)
        check(value, VALUES, "value")
        ask { |file| Native.functions_of_recording(file, value.name, name, @selection) }
      end

      # {functions} for people.
      #
      # @param limit [Integer] rows per table
      # @param color [Boolean]
      # @param (see #functions)
      # @return [String]
      # @raise (see #functions)
      # @example
      #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
      #   puts Memprof::Malloc::Recording.new("import.malloc").functions_text(limit: 5)
      def functions_text(name = nil, value: :peak, limit: 20, color: false)
        rows = functions(name, value: value)
        FunctionsText.new(@summary, rows, value: value, limit: limit, color: color).to_s
      end

      # The changes by location from this recording to a later one, of the same program after a change.
      #
      # @param after [Recording]
      # @return [Comparison]
      # @example
      #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
      #   recording = Memprof::Malloc::Recording.new("import.malloc")
      #   puts recording.compare(recording)
      def compare(after) = Comparison.new(self, after)

      # Writes the recording in another tool's format:
      #
      # - `:heaptrack`: for `heaptrack_print` and heaptrack's GUI (format 3), with every event;
      # - `:massif`: for `ms_print` and massif-visualizer, the peak and the end with their stacks;
      # - `:collapsed`: lines of `frame;frame bytes`, for flame graph scripts;
      # - `:speedscope`, `:firefox`, `:pprof`: for https://www.speedscope.app, https://profiler.firefox.com
      #   and https://github.com/google/pprof.
      #
      # @param path_or_io [String, Pathname, IO]
      # @param format [Symbol]
      # @param value [Symbol] the bytes of stacks, except for heaptrack and Massif: `:peak`, `:leaked` or
      #   `:allocated`
      # @return [void]
      # @raise [Error] if the file can't be read or written
      # @example
      #   Memprof::Malloc.record("import.malloc") { "x" * 10_000 }
      #   Memprof::Malloc::Recording.new("import.malloc").write("import.massif", format: :massif)
      def write(path_or_io, format:, value: :peak)
        format = Output.check_format(format, FORMATS)
        check(value, VALUES, "value")
        Output.open_file(path_or_io) do |out|
          reading do |file|
            Native.export_recording(file.fileno, out.fileno, format.name, value.name, @selection)
          rescue Error => e
            raise Error, "cannot export #{@path}: #{e.message}"
          end
        end
        nil
      end

      private

      def ask
        answer = reading { |file| yield(file.fileno) }
        raise Error, "cannot read #{@path}: it is not a recording of malloc" unless answer

        JSON.parse(answer, symbolize_names: true)
      end

      def reading(&block)
        File.open(@path, "rb", &block)
      rescue SystemCallError => e
        raise Error, "cannot read #{@path}: #{Output.reason(e)}"
      end

      def check(word, known, name)
        return if known.include?(word)

        raise ArgumentError, "unknown #{name} #{word.inspect}; expected one of: #{known.to_a.join(", ")}"
      end
    end
  end
end
