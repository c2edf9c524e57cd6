# frozen_string_literal: true

require_relative "../../byte_size"

module Memprof
  module CLI
    class Core
      # A command in chap's words: a verb, a set of blocks or regions, restrictions.
      #
      #   summarize leaked
      #   list used %RubyString /minsize 1000
      #   explain 55d90dacc010
      class CoreRequest
        VERBS = %w[count summarize list enumerate show describe explain].freeze
        REGIONS = %w[stacks modules writable readonly rxonly inaccessible].freeze
        # Sets relative to an address, and the numbers that follow it.
        RELATED = {
          "allocation" => {}, "incoming" => {}, "exactincoming" => {}, "outgoing" => {}, "freeoutgoing" => {},
          "chain" => { offset: "OFFSET" },
          "reversechain" => { offset: "SOURCE-OFFSET", target_offset: "TARGET-OFFSET" }
        }.freeze
        # chap's switches, and their options here.
        SIZES = {
          "/minsize" => %i[min_size], "/maxsize" => %i[max_size], "/size" => %i[min_size max_size]
        }.freeze
        REFERENCES = {
          "/minincoming" => :min_incoming, "/maxincoming" => :max_incoming, "/minoutgoing" => :min_outgoing,
          "/maxoutgoing" => :max_outgoing, "/minfreeoutgoing" => :min_free_outgoing,
          "/maxfreeoutgoing" => :max_free_outgoing
        }.freeze
        FLAGS = %w[/showascii /commentextensions].freeze
        SHOWN = { "/skip" => :skip, "/showupto" => :limit, "/sortby" => :sort }.freeze
        SWITCHES = [*SIZES.keys, *REFERENCES.keys, *FLAGS, *SHOWN.keys, "/extend"].freeze
        HEX = /\A(?:0x)?\h{1,16}\z/i
        # chap's guide writes `/minincoming=1`.
        WITH_VALUE = %r{\A(/[a-z]+)=(.*)\z}i
        ADDRESSES = 1 << 64
        # The largest number that Ruby can drop or take.
        MOST = (1 << 62) - 1
        private_constant :SIZES, :REFERENCES, :FLAGS, :SHOWN, :SWITCHES, :HEX, :WITH_VALUE, :ADDRESSES, :MOST

        attr_reader :verb, :set, :restrictions, :sort, :size, :show_ascii

        # Words as split by a shell, or in a line of a script.
        def initialize(words)
          @words = words.dup
          @restrictions = {}
          @skip = 0
          @show_ascii = true
          @comment_extensions = false
          @verb = @words.shift
          dump? ? read_dump : read_set
        end

        def dump? = verb == "dump"
        def region? = REGIONS.include?(set)
        def of_blocks? = !dump? && !region? && !%w[arenas objects].include?(set)

        # Whether the answer is incomplete if blocks are missing.
        def counts? = !dump? && !region?

        # The options for Core#each.
        def listed = @comment_extensions ? { **@restrictions, comment_extensions: true } : @restrictions

        # The rows of a list that /skip and /showUpTo select.
        def part(all)
          return all if skip.zero? && limit.nil?

          all = all.lazy.drop(skip)
          limit ? all.take(limit) : all
        end

        # Whether it names an address, which need not be in a block.
        def place? = set == "allocation" && @restrictions.keys == [:of]

        # The address for describe, explain and dump.
        def address = @restrictions[:of]

        private

        attr_reader :skip, :limit

        def read_dump
          @restrictions[:of] = address_from("dump")
          @size = number("SIZE", @words.shift)
          read_flag(*@words.shift(2)) if @words.first&.downcase == "/showascii"
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
          refuse("#{set} takes no restrictions") if @restrictions.any? && !of_blocks?
        end

        def read_signature(word)
          refuse("unexpected: #{word}") if @restrictions[:signature]
          @restrictions[:signature] = word
        end

        def read_switch(word)
          switch, value = WITH_VALUE.match(word)&.captures || [word]
          name = switch.downcase
          refuse("memprof core has no switch #{switch}") unless SWITCHES.include?(name)
          value ||= @words.shift || refuse("#{switch} needs a value")
          case name
          when "/extend" then (@restrictions[:extend] ||= []) << value
          when *REFERENCES.keys then read_references(REFERENCES[name], switch, value)
          when *FLAGS then read_flag(switch, value)
          when *SHOWN.keys then show(SHOWN[name], switch, value)
          else
            size = number(switch, value)
            SIZES[name].each { |key| @restrictions[key] = size }
          end
        end

        # `N`, or `SIGNATURE=N`, which may be repeated. Unlike sizes, these are decimal.
        def read_references(key, switch, value)
          signature, count = value.match(/\A(?:(.+)=)?(\d{1,9})\z/)&.captures
          expected = "expected a decimal number, or SIGNATURE=NUMBER"
          refuse("invalid #{switch} \"#{value}\"; #{expected}") unless count

          limits = (@restrictions[key] ||= {})
          limits[signature.to_s] = count.to_i
        end

        def read_flag(switch, value = nil)
          known = %w[true false].include?(value)
          refuse("invalid #{switch} \"#{value}\"; expected true or false") unless known
          flag = value == "true"
          switch.downcase == "/showascii" ? @show_ascii = flag : @comment_extensions = flag
        end

        def show(key, switch, value)
          case key
          when :skip then @skip = [number(switch, value), MOST].min
          when :limit then @limit = [number(switch, value), MOST].min
          else
            known = %w[bytes counts].include?(value)
            refuse("invalid /sortby \"#{value}\"; expected bytes or counts") unless known
            @sort = value
          end
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
          raise UsageError, message
        end
      end
    end
  end
end
