# frozen_string_literal: true

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
  # What a block or a program allocated, and what of it stayed. {Memprof.report} makes one.
  #
  # The totals and groups have the names that memory_profiler gives them, so that one can be read in place of
  # the other. The report is also an Enumerable of its {Site sites}, all of them, with the most bytes
  # allocated first.
  #
  # @example
  #   report = Memprof.report { 10.times { "abc" * 100 } }
  #   report.pretty_print
  #   report.max_by(&:retained_bytes)
  class Report
    include Enumerable
    include Groups

    autoload :Classic, "#{__dir__}/report/classic"
    autoload :Json, "#{__dir__}/report/json"
    autoload :Markdown, "#{__dir__}/report/markdown"
    autoload :Overview, "#{__dir__}/report/overview"
    autoload :Text, "#{__dir__}/report/text"

    # Formats that {#write} knows.
    FORMATS = %i[text json markdown collapsed speedscope firefox pprof].freeze
    # Entries of each group, unless said otherwise; as in memory_profiler.
    TOP = 50
    # Rows of a table in {#to_s} and {#to_markdown}, unless said otherwise: a report should fit on a screen.
    LIMIT = 20
    VALUES = %i[allocated_bytes allocated_objects retained_bytes retained_objects].freeze
    private_constant :TOP, :LIMIT, :VALUES

    # @return [Integer] at most so many entries has each group
    attr_reader :top
    # @api private
    attr_reader :profile

    # Says what is wrong with the options of a report, before the work that is to be reported on has run.
    #
    # @api private
    # @raise [ArgumentError] if an option can't be understood
    def self.check_filters(top: TOP, **filters)
      Filter.new(**filters)
      return if top.is_a?(Integer) && top.positive?

      raise ArgumentError, "top must be a positive Integer, not #{top.inspect}"
    end

    # @param profile [Memprof::Native::Profile] what was recorded
    # @param top [Integer] entries of each group, and rows of each table
    # @param allow_files [String, Regexp, Array<String, Regexp>, nil] only files that match
    # @param ignore_files [String, Regexp, Array<String, Regexp>, nil] no files that match
    # @param trace [Class, Array<Class>, nil] only objects of these classes
    # @param internal [Boolean, nil] the VM's own objects, as `<iseq>` and `<callcache>`, of which
    #   memory_profiler does not know: if nil they count, and text and Markdown sum them up in a line; true
    #   lists them, false leaves them out of totals, too
    # @raise [ArgumentError] if an option can't be understood
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

    # Bytes of the objects allocated: their memsize, of freed ones as it was when they were freed;
    # of classes and objects of C extensions that were freed only the slot.
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

    # Values of the strings allocated, and where, in memory_profiler's shape.
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

    # Every site and class at it, most bytes allocated first.
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

    # The sites without regard to their stacks that have objects of this kind: one for each file, line, method
    # and class.
    #
    # @api private
    # @param kind [Symbol] `:allocated`, `:retained` or `:freed`
    # @param limit [Integer] so many at most
    # @param sort [String] "memory" or "objects": those with most come first
    # @return [Array(Integer, Array<Site>)] how many there are, and the first of them
    def places(kind, limit:, sort: "memory")
      @places ||= {}
      @places[[kind, limit, sort]] ||= begin
        count, rows = profile.places(kind.to_s, sort, limit)
        [count, rows.map { |row| Site.new(row) }.freeze].freeze
      end
    end

    # When memory was largest: `time` (seconds after the start), `resident` (RSS then), `resident_ever` (the
    # largest RSS of the process so far), `malloc` (bytes of malloc in use then), `slots` (bytes of the slots
    # of tracked objects), `objects` and `bytes` (all tracked objects then). What the system does not know is
    # nil. {Site#peak_bytes} says which sites these were of.
    #
    # @return [Hash{Symbol => Numeric, nil}, nil] bytes and seconds; nil unless tracked with `peak: true`
    # @example
    #   report = Memprof.report(peak: true) { Array.new(1000) { "x" * 1000 } }
    #   report.peak[:objects] >= 1000 # => true
    #   report.max_by(&:peak_bytes).class_name # => "String"
    def peak
      @peak ||= meta["peak"]&.to_h { |name, value| [name.to_sym, value] }
    end

    # What tables for people show: the report without what the VM makes for itself, unless that was asked for.
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

    # Everything as JSON; valid UTF-8 whatever the names and strings hold.
    #
    # @return [String]
    # @example
    #   puts Memprof.report { Object.new }.to_json
    def to_json(*state)
      Loading.json
      return to_h.to_json(*state) if state.any?

      (+"").tap { |text| Json.new(self).each_part { |part| text << part } }
    end

    # The report for people: retained objects on top, then all allocations.
    #
    # @param limit [Integer, nil] rows of each table; 20 unless the report was made with a `top` of its own
    # @param color [Boolean] with colours for a terminal
    # @return [String]
    # @example
    #   puts Memprof.report { Object.new }
    def to_s(limit: nil, color: false) = Text.new(self, limit: rows(limit), color: color).to_s

    # The report for an issue or a pull request.
    #
    # @param limit [Integer, nil] rows of each table; 20 unless the report was made with a `top` of its own
    # @return [String]
    # @example
    #   puts Memprof.report { Object.new }.to_markdown
    def to_markdown(limit: nil) = Markdown.new(self, limit: rows(limit)).to_s

    # Prints the report in memory_profiler's shape. The options have memory_profiler's names and meanings;
    # `methods` and `ages` are our own, and add sections after that shape. Options that are not known here
    # are skipped, as memory_profiler does.
    #
    # @param io [IO] where to print
    # @param to_file [String, nil] print to this file instead
    # @param color_output [Boolean] colours; unless given, if `io` is a terminal and NO_COLOR is not set
    # @param options [Hash] what to print
    # @option options [Integer] :retained_strings how many retained strings; all (of {#top}) unless given
    # @option options [Integer] :allocated_strings how many allocated strings; all (of {#top}) unless given
    # @option options [Boolean] :detailed_report (true) false for the totals alone
    # @option options [Boolean] :scale_bytes (false) `16.66 kB` in place of `16660`
    # @option options [Boolean] :normalize_paths (false) paths beginning with the gem
    # @option options [Boolean] :methods (false) also what each method allocated and retained
    # @option options [Boolean] :ages (false) also how many objects of each site were freed, and at what age
    # @return [nil]
    # @raise [Memprof::Error] if it can't be written
    # @example
    #   Memprof.report { Object.new }.pretty_print(scale_bytes: true, normalize_paths: true)
    def pretty_print(io = $stdout, to_file: nil, color_output: :auto, **options)
      # `pp report` calls a method of this name with its own printer.
      if defined?(::PP) && ::PP === io
        io.text(inspect)
        return
      end

      target = to_file || io
      color = Paint.wanted?(target, color_output)
      classic = Classic.new(self, color: color, **options.slice(*Classic::OPTIONS))
      Output.open(target) { |out| classic.print(out) }
      nil
    end

    # Writes the report. A file appears whole or not at all, and only its owner can read it.
    #
    # @param path_or_io [String, Pathname, IO] the file, or an open IO
    # @param format [Symbol, String] one of {FORMATS}
    # @param limit [Integer, nil] rows of each table, for text and markdown
    # @param color [Boolean, Symbol] for text: `:auto` colours if an IO is a terminal and NO_COLOR is not set
    # @param value [Symbol, String] for collapsed, speedscope and firefox: what to draw, `allocated_bytes`,
    #   `allocated_objects`, `retained_bytes` or `retained_objects`
    # @return [nil]
    # @raise [ArgumentError] if there is no such format or value; lists those that exist
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

    # Piece by piece: of a large program it is some hundred megabytes.
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

      raise ArgumentError, "unknown value #{value.inspect}; known values: #{VALUES.join(", ")}"
    end
  end
end
