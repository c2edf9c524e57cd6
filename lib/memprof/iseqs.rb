# frozen_string_literal: true

require_relative "loading"
require_relative "native"
require_relative "output"
require_relative "paint"
require_relative "iseqs/entry"
require_relative "iseqs/group"

module Memprof
  # What Ruby has compiled: the instruction sequences of all methods, blocks, class bodies and files, which
  # ObjectSpace.memsize_of_all leaves out. {Memprof.iseqs} makes one. It is an Enumerable of {Entry entries},
  # most bytes first.
  #
  # The numbers are those of the moment at which it was made.
  #
  # @example Who generates code, and how much of it
  #   Memprof.iseqs.by(:location).first(3).each { |group| puts "#{group.name}: #{group.memsize} bytes" }
  class Iseqs
    include Enumerable

    autoload :IseqsText, "#{__dir__}/iseqs/iseqs_text"

    # Formats that {#write} knows.
    FORMATS = %i[text json markdown].freeze
    # What {#by} knows, and the method of an entry that returns it.
    KEYS = { file: :file, method: :method_name, label: :label, location: :location }.freeze
    private_constant :KEYS

    # @return [Array<Entry>] all that there is, most bytes first
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

    # The number of instruction sequences, as `ObjectSpace.count_imemo_objects[:imemo_iseq]` has it. Several
    # may be alike and so be one entry. With an argument or a block it counts entries, as Enumerable does.
    #
    # @return [Integer]
    # @example
    #   Memprof.iseqs.count.positive? # => true
    def count(*arguments, &block)
      arguments.empty? && block.nil? ? entries.sum(&:count) : super
    end

    # The bytes of all of them: what the gem iseq_collector calls `memsize_of_all_iseq`.
    #
    # @return [Integer]
    # @example
    #   Memprof.iseqs.memsize.positive? # => true
    def memsize = entries.sum(&:memsize)

    # Groups of entries, most bytes first.
    #
    # @param key [Symbol, String] `:file`, `:method`, `:label`, or `:location` (file and first line)
    # @return [Array<Group>]
    # @raise [ArgumentError] if there is no such key; lists those that exist
    # @example
    #   Memprof.iseqs.by(:file).first.name
    def by(key)
      reader = KEYS.find { |name, _| name.to_s == key.to_s }&.last
      raise ArgumentError, "unknown key #{key.inspect}; known keys: #{KEYS.keys.join(", ")}" unless reader

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

    # Everything as JSON; valid UTF-8 whatever the names hold.
    #
    # @return [String]
    # @example
    #   puts Memprof.iseqs.to_json
    def to_json(*state)
      Loading.json
      to_h.to_json(*state)
    end

    # The places and the files that have most bytes, as tables.
    #
    # @param limit [Integer] lines of a table at most
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

    # Writes it. A file appears whole or not at all, and only its owner can read it.
    #
    # @param path_or_io [String, Pathname, IO] the file, or an open IO
    # @param format [Symbol, String] one of {FORMATS}
    # @param limit (see #to_s)
    # @param color [Boolean, Symbol] for text: `:auto` colours if an IO is a terminal and NO_COLOR is not set
    # @return [nil]
    # @raise [ArgumentError] if there is no such format; lists those that exist
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
  end
end
