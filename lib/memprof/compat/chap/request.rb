# frozen_string_literal: true

require_relative "../../byte_size"

module Memprof
  module Compat
    module Chap
      # A command in chap's words: a verb, a set of blocks or regions, restrictions.
      #
      #   summarize leaked
      #   list used %RubyString /minsize 1000
      #   explain 55d90dacc010
      class Request
        VERBS = %w[count summarize list enumerate show describe explain].freeze
        REGIONS = %w[stacks modules writable readonly rxonly inaccessible].freeze
        # Sets relative to an address, and the numbers that follow it.
        RELATED = {
          "allocation" => {}, "incoming" => {}, "exactincoming" => {}, "outgoing" => {}, "freeoutgoing" => {},
          "chain" => { offset: "OFFSET" },
          "reversechain" => { offset: "SOURCE-OFFSET", target_offset: "TARGET-OFFSET" }
        }.freeze
        # Each switch, what reads its value, and the options that the value is for.
        SWITCHES = {
          "/minsize" => %i[read_size min_size], "/maxsize" => %i[read_size max_size],
          "/size" => %i[read_size min_size max_size],
          "/minincoming" => %i[read_references min_incoming],
          "/maxincoming" => %i[read_references max_incoming],
          "/minoutgoing" => %i[read_references min_outgoing],
          "/maxoutgoing" => %i[read_references max_outgoing],
          "/minfreeoutgoing" => %i[read_references min_free_outgoing],
          "/maxfreeoutgoing" => %i[read_references max_free_outgoing],
          "/extend" => %i[read_rule], "/commentextensions" => %i[read_flag comment_extensions],
          "/showascii" => %i[read_flag show_ascii], "/sortby" => %i[read_sort],
          "/skip" => %i[read_rows skip], "/showupto" => %i[read_rows limit]
        }.freeze
        SORTS = %w[bytes counts].freeze
        HEX = /\A(?:0x)?\h{1,16}\z/i
        # chap's guide writes `/minincoming=1`.
        WITH_VALUE = %r{\A(/[a-z]+)=(.*)\z}i
        ADDRESSES = 1 << 64
        # The largest number that Ruby can drop or take.
        MOST = (1 << 62) - 1
        private_constant :SWITCHES, :SORTS, :HEX, :WITH_VALUE, :ADDRESSES, :MOST

        attr_reader :verb, :set, :restrictions, :size

        # Words as split by a shell, or in a line of a script.
        def initialize(words)
          @words = words.dup
          @restrictions = {}
          @shown = { skip: 0, show_ascii: true }
          @verb = @words.shift
          dump? ? read_dump : read_set
        end

        def dump? = verb == "dump"

        # The subject: `:memory` at an address, `:regions`, `:arenas`, `:objects` or `:blocks`.
        def kind
          return :memory if dump?
          return :regions if REGIONS.include?(set)

          %w[arenas objects].include?(set) ? set.to_sym : :blocks
        end

        # Whether the answer is incomplete if blocks are missing.
        def counts? = !%i[memory regions].include?(kind)

        # The options for Core#each.
        def listed = { **@restrictions, **@shown.slice(:comment_extensions) }

        def sort = @shown[:sort]
        def show_ascii = @shown[:show_ascii]

        # The rows of a list that /skip and /showUpTo select.
        def part(all)
          skip, limit = @shown.values_at(:skip, :limit)
          return all if skip.zero? && limit.nil?

          all = all.lazy.drop(skip)
          limit ? all.take(limit) : all
        end

        # Whether it names an address, which need not be in a block.
        def place? = set == "allocation" && @restrictions.keys == [:of]

        # The address for describe, explain and dump.
        def address = @restrictions[:of]

        private

        def read_dump
          @restrictions[:of] = address_from("dump")
          @size = number("SIZE", @words.shift)
          read_flag(*@words.shift(2), :show_ascii) if @words.first&.downcase == "/showascii"
          refuse("unexpected: #{@words.join(" ")}") if @words.any?
        end

        def read_set
          refuse("unknown command \"#{verb}\"; expected one of: #{VERBS.join(", ")}, dump") unless
            VERBS.include?(verb)

          @set = @words.shift || refuse("#{verb} needs a set or an address, as leaked")
          if HEX.match?(@set) && %w[describe explain].include?(verb)
            @restrictions[:of] = @set.downcase
            @set = "allocation"
          elsif RELATED.key?(@set)
            @restrictions[:of] = address_from(@set)
            RELATED[@set].each { |key, name| @restrictions[key] = number(name, @words.shift) }
          end
          read_restrictions
        end

        def read_restrictions
          until @words.empty?
            word = @words.shift
            word.start_with?("/") ? read_switch(word) : read_signature(word)
          end
          refuse("#{set} takes no restrictions") if @restrictions.any? && kind != :blocks
        end

        def read_signature(word)
          refuse("unexpected: #{word}") if @restrictions[:signature]
          @restrictions[:signature] = word
        end

        def read_switch(word)
          switch, value = WITH_VALUE.match(word)&.captures || [word]
          reader, *keys = SWITCHES[switch.downcase] || refuse("memprof core has no switch #{switch}")
          value ||= @words.shift || refuse("#{switch} needs a value")
          send(reader, switch, value, *keys)
        end

        def read_rule(_, value) = (@restrictions[:extend] ||= []) << value

        def read_size(switch, value, *keys)
          size = number(switch, value)
          keys.each { |key| @restrictions[key] = size }
        end

        # `N`, or `SIGNATURE=N`, which may be repeated. Unlike sizes, these are decimal.
        def read_references(switch, value, key)
          signature, count = value.match(/\A(?:(.+)=)?(\d{1,9})\z/)&.captures
          expected = "expected a decimal number, or SIGNATURE=NUMBER"
          refuse("invalid #{switch} \"#{value}\"; #{expected}") unless count

          limits = (@restrictions[key] ||= {})
          limits[signature.to_s] = count.to_i
        end

        def read_flag(switch, value = nil, key)
          known = %w[true false].include?(value)
          refuse("invalid #{switch} \"#{value}\"; expected true or false") unless known
          @shown[key] = value == "true"
        end

        def read_rows(switch, value, key)
          @shown[key] = [number(switch, value), MOST].min
        end

        def read_sort(_, value)
          refuse("invalid /sortby \"#{value}\"; expected bytes or counts") unless SORTS.include?(value)
          @shown[:sort] = value
        end

        def address_from(word)
          address = @words.shift
          refuse("#{word} needs an address") unless address
          refuse("\"#{address}\" is not an address") unless HEX.match?(address)
          address.downcase
        end

        # Numbers are hexadecimal, as in chap; sizes may have a unit.
        def number(name, text)
          return Integer(text, 16) if text && HEX.match?(text)

          size = ByteSize.read(text.to_s)
          raise ArgumentError, "#{text} is beyond the address space" if size >= ADDRESSES

          size
        rescue ArgumentError
          refuse("invalid #{name} \"#{text}\"; expected a hexadecimal number, or a size as 64KiB")
        end

        def refuse(message)
          raise CLI::UsageError, message
        end
      end
    end
  end
end
