# frozen_string_literal: true

require_relative "loading"
require_relative "native"
require_relative "output"
require_relative "paint"
require_relative "iseqs/entry"
require_relative "iseqs/group"

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

    autoload :IseqsText, "#{__dir__}/iseqs/iseqs_text"

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
  end
end
