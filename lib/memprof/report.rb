# frozen_string_literal: true

require_relative "compat"
require_relative "internal_classes"
require_relative "loading"
require_relative "output"
require_relative "paint"
require_relative "paths"
require_relative "printable"
require_relative "units"
require_relative "report/filter"
require_relative "report/groups"
require_relative "report/site"

module Memprof
  # The allocated and retained objects of a block or a program. Created by {Memprof.report}.
  #
  # The totals and groups have memory_profiler's names, so that one can be read in place of the other. The
  # report is also an Enumerable of all its {Site sites}, most allocated bytes first.
  #
  # @example
  #   report = Memprof.report { 10.times { "abc" * 100 } }
  #   report.pretty_print
  #   report.max_by(&:retained_bytes)
  class Report
    include Enumerable
    include Groups

    autoload :Json, "#{__dir__}/report/json"
    autoload :Markdown, "#{__dir__}/report/markdown"
    autoload :Overview, "#{__dir__}/report/overview"
    autoload :Text, "#{__dir__}/report/text"

    # Formats that {#write} accepts.
    FORMATS = %i[text json markdown collapsed speedscope firefox pprof].freeze
    # Default number of entries per group, as in memory_profiler.
    TOP = 50
    # Default number of rows per table in {#to_s} and {#to_markdown}: a report should fit on a screen.
    LIMIT = 20
    VALUES = %i[allocated_bytes allocated_objects retained_bytes retained_objects].freeze
    private_constant :TOP, :LIMIT, :VALUES

    # @return [Integer] maximum number of entries per group
    attr_reader :top
    # @api private
    attr_reader :profile

    # Rejects invalid report options before the measured code runs.
    #
    # @api private
    # @raise [ArgumentError] if an option is invalid
    def self.check_filters(top: TOP, **filters)
      Filter.new(**filters)
      return if top.is_a?(Integer) && top.positive?

      raise ArgumentError, "top must be a positive Integer, not #{top.inspect}"
    end

    # @param profile [Memprof::Native::Profile] the recorded profile
    # @param top [Integer] entries per group, and rows per table
    # @param allow_files [String, Regexp, Array<String, Regexp>, nil] only files that match
    # @param ignore_files [String, Regexp, Array<String, Regexp>, nil] no files that match
    # @param trace [Class, Array<Class>, nil] only objects of these classes
    # @param internal [Boolean, nil] the VM's own objects, such as `<iseq>` and `<callcache>`, which
    #   memory_profiler does not know: nil counts them and sums them up in one line of text and Markdown; true
    #   lists them; false also excludes them from totals
    # @raise [ArgumentError] if an option is invalid
    # @api private
    def initialize(profile, top: TOP, allow_files: nil, ignore_files: nil, trace: nil, internal: nil)
      self.class.check_filters(top: top)
      @top = top
      filter = Filter.new(allow_files: allow_files, ignore_files: ignore_files, trace: trace,
        internal: internal)
      @profile = filter.apply(profile)
      @internal = internal
    end

    # Objects allocated.
    #
    # @return [Integer]
    # @example
    #   Memprof.report(trace: Object) { 3.times { Object.new } }.total_allocated # => 3
    def total_allocated = totals.dig("allocated", "objects")

    # Memsize of the allocated objects; that of freed ones is taken when they are freed, and for freed classes
    # and objects of C extensions it is only the slot.
    #
    # @return [Integer]
    # @example
    #   Memprof.report { "a" * 1000 }.total_allocated_memsize
    def total_allocated_memsize = totals.dig("allocated", "bytes")

    # Objects that are still alive.
    #
    # @return [Integer]
    # @example
    #   Memprof.report(trace: Object) { $kept = Object.new }.total_retained # => 1
    def total_retained = totals.dig("retained", "objects")

    # Bytes (memsize) of the objects that are still alive.
    #
    # @return [Integer]
    # @example
    #   Memprof.report { $kept = "a" * 1000 }.total_retained_memsize
    def total_retained_memsize = totals.dig("retained", "bytes")

    # Values of the allocated strings, and their locations, in memory_profiler's shape.
    #
    # @return [Array] `[[value, [[location, count], ...]], ...]`, most first, at most {#top}
    # @example
    #   Memprof.report { 3.times { "a".dup } }.strings_allocated.first
    def strings_allocated
      @strings_allocated ||= strings("allocated")
    end

    # Values of the strings that are still alive, and where they were allocated, in memory_profiler's shape.
    #
    # @return [Array] `[[value, [[location, count], ...]], ...]`, most first, at most {#top}
    # @example
    #   Memprof.report { $kept = "a".dup }.strings_retained
    def strings_retained
      @strings_retained ||= strings("retained")
    end

    # Every pair of site and class, most allocated bytes first.
    #
    # @return [Array<Site>] frozen
    # @example
    #   Memprof.report { Object.new }.sites.map(&:location)
    def sites
      @sites ||= profile.enum_for(:each_site).map { |row| Site.new(row) }.freeze
    end

    # Calls the block with each site; see {#sites}.
    #
    # @yieldparam site [Site]
    # @return [self, Enumerator] an Enumerator without a block
    # @example
    #   report = Memprof.report { Object.new }
    #   report.each { |site| puts site }
    def each(&block)
      return enum_for(:each) { sites.size } unless block

      sites.each(&block)
      self
    end

    # Sites that have objects of this kind, merged across stacks: one for each file, line, method and class.
    #
    # @api private
    # @param kind [Symbol] `:allocated`, `:retained` or `:freed`
    # @param limit [Integer] maximum number of sites
    # @param sort [String] "memory" or "objects": the largest come first
    # @return [Array(Integer, Array<Site>)] the total number of sites, and the first of them
    def places(kind, limit:, sort: "memory")
      @places ||= {}
      @places[[kind, limit, sort]] ||= begin
        count, rows = profile.places(kind.to_s, sort, limit)
        [count, rows.map { |row| Site.new(row) }.freeze].freeze
      end
    end

    # When memory peaked: `time` (seconds after the start), `resident` (RSS then), `resident_ever` (the
    # largest RSS of the process so far), `malloc` (malloc bytes in use then), `slots` (slot bytes of tracked
    # objects), `objects` and `bytes` (all tracked objects then). Values that the system can't provide are
    # nil. {Site#peak_bytes} says which sites contributed.
    # @return [Hash{Symbol => Numeric, nil}, nil] bytes and seconds; nil unless tracked with `peak: true`
    # @example
    #   report = Memprof.report(peak: true) { Array.new(1000) { "x" * 1000 } }
    #   report.peak[:objects] >= 1000 # => true
    #   report.max_by(&:peak_bytes).class_name # => "String"
    def peak
      @peak ||= meta["peak"]&.to_h { |name, value| [name.to_sym, value] }
    end

    # The report for tables: without the VM's own objects, unless they were asked for.
    #
    # @api private
    def listed
      return self unless @internal.nil?

      @listed ||= begin
        classes = profile.classes
        shown = classes.reject { |name| InternalClasses.of_vm?(name) }
        shown == classes ? self : self.class.new(profile.filter(nil, shown), top: top, internal: true)
      end
    end

    # Facts of the run: Ruby, duration, GC runs, sampling.
    #
    # @return [Hash{String => Object}]
    # @example
    #   Memprof.report { Object.new }.meta["gc_count"]
    def meta
      @meta ||= profile.meta
    end

    # Objects and bytes that were allocated, retained and freed.
    #
    # @return [Hash{String => Hash{String => Integer}}]
    # @example
    #   Memprof.report { Object.new }.totals["freed"] # => {"objects" => 1, "bytes" => 40}
    def totals
      @totals ||= profile.totals
    end

    # Everything as plain values, with exact numbers and all sites.
    #
    # @return [Hash{Symbol => Object}]
    # @example
    #   Memprof.report { Object.new }.to_h[:totals]
    def to_h = Json.new(self).to_h

    # Everything as JSON; valid UTF-8 whatever the names and strings contain.
    #
    # @return [String]
    # @example
    #   puts Memprof.report { Object.new }.to_json
    def to_json(*state)
      Loading.json
      return to_h.to_json(*state) if state.any?

      (+"").tap { |text| Json.new(self).each_part { |part| text << part } }
    end

    # The report for people: retained objects first, then all allocations.
    #
    # @param limit [Integer, nil] rows per table; 20 unless the report has its own `top`
    # @param color [Boolean] with colours for a terminal
    # @return [String]
    # @example
    #   puts Memprof.report { Object.new }
    def to_s(limit: nil, color: false) = Text.new(self, limit: rows(limit), color: color).to_s

    # The report for an issue or a pull request.
    #
    # @param limit [Integer, nil] rows per table; 20 unless the report has its own `top`
    # @return [String]
    # @example
    #   puts Memprof.report { Object.new }.to_markdown
    def to_markdown(limit: nil) = Markdown.new(self, limit: rows(limit)).to_s

    # Prints the report in memory_profiler's shape. The options have memory_profiler's names and meanings;
    # `methods` and `ages` are ours, and add sections at the end. Unknown options are ignored, as in
    # memory_profiler.
    #
    # @param io [IO] where to print
    # @param to_file [String, nil] print to this file instead
    # @param color_output [Boolean] colours; by default, if `io` is a terminal and NO_COLOR is not set
    # @param options [Hash] what to print
    # @option options [Integer] :retained_strings number of retained strings; default: {#top}
    # @option options [Integer] :allocated_strings number of allocated strings; default: {#top}
    # @option options [Boolean] :detailed_report (true) false for the totals alone
    # @option options [Boolean] :scale_bytes (false) `16.66 kB` in place of `16660`
    # @option options [Boolean] :normalize_paths (false) paths beginning with the gem
    # @option options [Boolean] :methods (false) also the allocated and retained objects of each method
    # @option options [Boolean] :ages (false) also the freed objects of each site, and their age
    # @return [nil]
    # @raise [Memprof::Error] if it can't be written
    # @example
    #   Memprof.report { Object.new }.pretty_print(scale_bytes: true, normalize_paths: true)
    def pretty_print(io = $stdout, to_file: nil, color_output: :auto, **options)
      # `pp report` calls this method with its own printer.
      if defined?(::PP) && ::PP === io
        io.text(inspect)
        return
      end

      target = to_file || io
      color = Paint.wanted?(target, color_output)
      options = options.slice(*Compat::MemoryProfilerReport::OPTIONS)
      report = Compat::MemoryProfilerReport.new(self, color: color, **options)
      Output.open(target) { |out| report.print(out) }
      nil
    end

    # Writes the report. A file is written atomically, and only its owner can read it.
    #
    # @param path_or_io [String, Pathname, IO] the file, or an open IO
    # @param format [Symbol, String] one of {FORMATS}
    # @param limit [Integer, nil] rows per table, for text and markdown
    # @param color [Boolean, Symbol] for text: `:auto` colours if an IO is a terminal and NO_COLOR is not set
    # @param value [Symbol, String] for collapsed, speedscope and firefox: the value to draw,
    #   `allocated_bytes`, `allocated_objects`, `retained_bytes` or `retained_objects`
    # @return [nil]
    # @raise [ArgumentError] if the format or value is invalid; lists the valid ones
    # @raise [Memprof::Error] if it can't be written
    # @example
    #   report = Memprof.report(stack: 32) { Object.new }
    #   report.write("report.json", format: :json)
    #   report.write("profile.pb.gz", format: :pprof)
    def write(path_or_io = $stdout, format: :text, limit: nil, color: :auto, value: :allocated_bytes)
      content =
        case Output.check_format(format, FORMATS)
        when :text then to_s(limit: limit, color: Paint.wanted?(path_or_io, color))
        when :json then return write_json(path_or_io)
        when :markdown then to_markdown(limit: limit)
        else profile.export(format.to_s, value_name(value))
        end
      Output.write(path_or_io, content)
    end

    # @return [String] the totals, for the console
    # @example
    #   p Memprof.report { Object.new }
    def inspect
      allocated = "#{Units.objects(total_allocated, total_allocated_memsize)} allocated"
      retained = "#{Units.count(total_retained)} (#{Units.bytes(total_retained_memsize)}) retained"
      "#<#{self.class} #{allocated}, #{retained}>"
    end

    private

    # Written in parts: for a large program it has several hundred megabytes.
    def write_json(path_or_io)
      Output.open(path_or_io) do |io|
        Json.new(self).each_part { |part| io.write(part) }
        io.write("\n")
      end
      nil
    end

    def strings(kind)
      profile.strings(kind, top).map do |value, _objects, locations|
        places = locations.map { |location, count| [Printable.utf8(location), count].freeze }
        [Printable.utf8(value), places.freeze].freeze
      end.freeze
    end

    def rows(limit)
      return top == TOP ? LIMIT : top if limit.nil?
      return limit if limit.is_a?(Integer) && limit.positive?

      raise ArgumentError, "limit must be a positive Integer, not #{limit.inspect}"
    end

    def value_name(value)
      return value.to_s if VALUES.any? { |known| known.to_s == value.to_s }

      raise ArgumentError, "unknown value #{value.inspect}; expected one of: #{VALUES.join(", ")}"
    end
  end
end
