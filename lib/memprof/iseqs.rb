# frozen_string_literal: true

require_relative "loading"
require_relative "located"
require_relative "native"
require_relative "output"
require_relative "paint"
require_relative "paths"
require_relative "printable"
require_relative "table"
require_relative "units"

module Memprof
  # Ruby's compiled code: the instruction sequences of all methods, blocks, class bodies and files, which
  # ObjectSpace.memsize_of_all leaves out. Created by {Memprof.iseqs}. An Enumerable of {Entry entries}, most
  # bytes first.
  #
  # The numbers are a snapshot.
  #
  # @example Who generates code, and how much of it
  #   Memprof.iseqs.by(:location).first(3).each { |group| puts "#{group.name}: #{group.memsize} bytes" }
  class Iseqs
    include Enumerable

    # Formats that {#write} accepts.
    FORMATS = %i[text json markdown].freeze
    # Keys of {#by}, and the methods of an entry that return them.
    KEYS = { file: :file, method: :method_name, label: :label, location: :location }.freeze
    private_constant :KEYS

    # @return [Array<Entry>] all entries, most bytes first
    attr_reader :entries

    # @param rows [Array<Array>] path, label, method, first line, count, bytes
    # @api private
    def initialize(rows)
      @entries = rows.map { |row| Entry.new(*row) }.freeze
    end

    # Calls the block with each entry, most bytes first.
    #
    # @yieldparam entry [Entry]
    # @return [self, Enumerator] an Enumerator without a block
    # @example
    #   Memprof.iseqs.each { |entry| puts entry.location if entry.count > 10 }
    def each(&block)
      return enum_for(:each) { entries.size } unless block

      entries.each(&block)
      self
    end

    # The number of instruction sequences, as in `ObjectSpace.count_imemo_objects[:imemo_iseq]`. Several
    # identical ones form one entry. With an argument or a block it counts entries, as Enumerable does.
    #
    # @return [Integer]
    # @example
    #   Memprof.iseqs.count.positive? # => true
    def count(*arguments, &block)
      arguments.empty? && block.nil? ? entries.sum(&:count) : super
    end

    # The bytes of all of them, called `memsize_of_all_iseq` in the gem iseq_collector.
    #
    # @return [Integer]
    # @example
    #   Memprof.iseqs.memsize.positive? # => true
    def memsize = entries.sum(&:memsize)

    # Groups of entries, most bytes first.
    #
    # @param key [Symbol, String] `:file`, `:method`, `:label`, or `:location` (file and first line)
    # @return [Array<Group>]
    # @raise [ArgumentError] if the key is invalid; lists the valid ones
    # @example
    #   Memprof.iseqs.by(:file).first.name
    def by(key)
      reader = KEYS.find { |name, _| name.to_s == key.to_s }&.last
      unless reader
        raise ArgumentError, "unknown key #{key.inspect}; expected one of: #{KEYS.keys.join(", ")}"
      end

      groups = entries.group_by(&reader).map { |name, members| Group.new(name || NOT_IN_A_METHOD, members) }
      groups.sort_by { |group| [-group.memsize, group.name] }
    end

    # Everything as plain values.
    #
    # @return [Hash{Symbol => Object}]
    # @example
    #   Memprof.iseqs.to_h[:count].positive? # => true
    def to_h
      { format: "memprof-iseqs", version: 1, count: count, memsize: memsize, entries: entries.map(&:to_h) }
    end

    # Everything as JSON; valid UTF-8 whatever the names contain.
    #
    # @return [String]
    # @example
    #   puts Memprof.iseqs.to_json
    def to_json(*state)
      Loading.json
      to_h.to_json(*state)
    end

    # The places and the files with most bytes, as tables.
    #
    # @param limit [Integer] maximum number of rows per table
    # @param color [Boolean] with colours for a terminal
    # @return [String]
    # @example
    #   puts Memprof.iseqs.to_s(limit: 5)
    def to_s(limit: 20, color: false) = IseqsText.new(self, limit: limit).to_s(color: color)

    # The same as Markdown, for an issue or a pull request.
    #
    # @param limit (see #to_s)
    # @return [String]
    # @example
    #   puts Memprof.iseqs.to_markdown(limit: 5)
    def to_markdown(limit: 20) = IseqsText.new(self, limit: limit).to_markdown

    # Writes the result. A file is written atomically, and only its owner can read it.
    #
    # @param path_or_io [String, Pathname, IO] the file, or an open IO
    # @param format [Symbol, String] one of {FORMATS}
    # @param limit (see #to_s)
    # @param color [Boolean, Symbol] for text: `:auto` colours if an IO is a terminal and NO_COLOR is not set
    # @return [nil]
    # @raise [ArgumentError] if the format is invalid; lists the valid ones
    # @raise [Memprof::Error] if it can't be written
    # @example
    #   Memprof.iseqs.write("iseqs.json", format: :json)
    def write(path_or_io = $stdout, format: :text, limit: 20, color: :auto)
      content =
        case Output.check_format(format, FORMATS)
        when :text then to_s(limit: limit, color: Paint.wanted?(path_or_io, color))
        when :json then "#{to_json}\n"
        else to_markdown(limit: limit)
        end
      Output.write(path_or_io, content)
    end

    # @return [String] for the console
    # @example
    #   p Memprof.iseqs
    def inspect = "#<#{self.class} #{count} of #{memsize} bytes>"

    # Replaces a name that the VM does not know (yet): the code is being compiled.
    NO_NAME = "(no name)"
    # The group in {Iseqs#by} for code outside of methods: files, class bodies, blocks in them.
    NOT_IN_A_METHOD = "(no method)"
    private_constant :NO_NAME, :NOT_IN_A_METHOD

    # Instruction sequences with the same names and the same first line; usually one. Frozen.
    class Entry
      include Located

      # @return [String] path of the source file as in a backtrace; `"(eval)"`, or with Ruby 3.3 and later
      #   `"(eval at FILE:LINE)"`, for code evaluated without a path
      attr_reader :file
      # @return [Integer] first line of the code
      attr_reader :line
      # @return [String] such as `"fetch"`, `"block in fetch"` or `"<class:Cache>"`
      attr_reader :label
      # @return [String, nil] name of the method that contains the code
      attr_reader :method_name
      # @return [Integer] instruction sequences
      attr_reader :count
      # @return [Integer] their bytes
      attr_reader :memsize

      # @api private
      def initialize(file, label, method_name, line, count, memsize)
        @file = Printable.utf8(file || NO_NAME).freeze
        @label = Printable.utf8(label || NO_NAME).freeze
        @method_name = method_name && Printable.utf8(method_name).freeze
        @line = line
        @count = count
        @memsize = memsize
        freeze
      end

      # The entry as a Hash of plain values.
      #
      # @return [Hash{Symbol => Object}]
      # @example
      #   Memprof.iseqs.first.to_h.keys.last(2) # => [:count, :memsize]
      def to_h = { file: file, line: line, label: label, method: method_name, count: count, memsize: memsize }

      # @return [String] for the console
      # @example
      #   p Memprof.iseqs.first
      def inspect = Printable.line("#<#{self.class} #{location} #{label}: #{count} of #{memsize} bytes>")
    end

    # Entries with the same file, method, label or place. Frozen.
    class Group
      # @return [String] the common file, method, label or place
      attr_reader :name
      # @return [Array<Entry>] most bytes first
      attr_reader :entries
      # @return [Integer] instruction sequences
      attr_reader :count
      # @return [Integer] their bytes
      attr_reader :memsize

      # @api private
      def initialize(name, entries)
        @name = name
        @entries = entries.freeze
        @count = entries.sum(&:count)
        @memsize = entries.sum(&:memsize)
        freeze
      end

      # The group as a Hash of plain values, without its entries.
      #
      # @return [Hash{Symbol => Object}]
      # @example
      #   Memprof.iseqs.by(:file).first.to_h.keys # => [:name, :count, :memsize]
      def to_h = { name: name, count: count, memsize: memsize }

      # @return [String] for the console
      # @example
      #   p Memprof.iseqs.by(:label).first
      def inspect = Printable.line("#<#{self.class} #{name}: #{count} of #{memsize} bytes>")
    end

    # Instruction sequences for people: a table of places, and one of files.
    # @api private
    class IseqsText
      # Maximum number of names per place; the rest is counted.
      SHOWN = 3
      NAME_WIDTH = 30
      private_constant :SHOWN, :NAME_WIDTH

      def initialize(iseqs, limit:)
        unless limit.is_a?(Integer) && limit.positive?
          raise ArgumentError, "limit must be a positive Integer, not #{limit.inspect}"
        end

        @iseqs = iseqs
        @places = iseqs.by(:location)
        @files = iseqs.by(:file)
        @limit = limit
        @directory = Paths.working_directory
      end

      def to_s(color: false)
        paint = Paint.new(color)
        [
          "#{paint.call(headline, :bold)}\n", "#{places.to_text(paint)}#{rest(@places, "place")}",
          "#{files.to_text(paint)}#{rest(@files, "file")}"
        ].join("\n")
      end

      def to_markdown
        [
          "**#{headline}**\n",
          places.to_markdown, rest(@places, "place"), files.to_markdown, rest(@files, "file")
        ].reject(&:empty?).join("\n")
      end

      private

      def headline = "#{Units.plural(@iseqs.count, "instruction sequence")}, #{Units.bytes(@iseqs.memsize)}"

      def places
        table = columns.columns(:code, style: :cyan).columns(:defined_at)
        @places.first(@limit).each do |group|
          entry = group.entries.first
          table.row(*amounts(group), code(group), Paths.short("#{entry.file}:#{entry.line}", @directory))
        end
        table
      end

      def files
        table = columns.columns(:file)
        @files.first(@limit).each { |group| table.row(*amounts(group), Paths.short(group.name, @directory)) }
        table
      end

      def columns = Table.new.columns(:bytes, style: :red).columns(:number)

      def amounts(group) = [Units.bytes(group.memsize), Units.count(group.count)]

      # Blocks have the name of their method; code outside of methods has its label.
      def code(group)
        names = group.entries.map { |entry| entry.method_name || entry.label }.uniq
        shown = names.first(SHOWN).map { |name| Printable.fit(name, NAME_WIDTH) }
        more = names.size - shown.size
        more.zero? ? shown.join(", ") : "#{shown.join(", ")} and #{Units.count(more)} more"
      end

      def rest(groups, noun)
        more = groups.drop(@limit)
        return "" if more.empty?

        "#{Units.plural(more.size, "more #{noun}")} with #{Units.bytes(more.sum(&:memsize))}\n"
      end
    end
  end
end
