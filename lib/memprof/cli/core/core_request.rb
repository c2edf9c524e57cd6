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
        # Sets that are relative to an address, and the numbers that follow it.
        RELATED = {
          "allocation" => {}, "incoming" => {}, "exactincoming" => {}, "outgoing" => {}, "freeoutgoing" => {},
          "chain" => { offset: "OFFSET" },
          "reversechain" => { offset: "SOURCE-OFFSET", target_offset: "TARGET-OFFSET" }
        }.freeze
        # Switches of chap, and what they are here. All but the last four restrict the set.
        SWITCHES = {
          "/minsize" => %i[min_size], "/maxsize" => %i[max_size], "/size" => %i[min_size max_size],
          "/minincoming" => %i[min_incoming], "/maxincoming" => %i[max_incoming],
          "/minoutgoing" => %i[min_outgoing], "/maxoutgoing" => %i[max_outgoing],
          "/minfreeoutgoing" => %i[min_free_outgoing], "/maxfreeoutgoing" => %i[max_free_outgoing],
          "/skip" => %i[skip], "/showupto" => %i[limit], "/sortby" => %i[sort],
          "/extend" => %i[extend]
        }.freeze
        SHOWN = %i[skip limit sort].freeze
        HEX = /\A(?:0x)?\h{1,16}\z/i
        private_constant :SWITCHES, :SHOWN, :HEX

        attr_reader :verb, :set, :restrictions, :skip, :limit, :sort, :size

        # Words as a shell or a line of a script separates them.
        def initialize(words)
          @words = words.dup
          @restrictions = {}
          @skip = 0
          @verb = @words.shift
          dump? ? read_dump : read_set
        end

        def dump? = verb == "dump"
        def region? = REGIONS.include?(set)

        # The address that describe, explain and dump are about.
        def address = @restrictions[:of]

        private

        def read_dump
          @restrictions[:of] = address_from("dump")
          @size = number("SIZE", @words.shift)
          refuse("unexpected: #{@words.join(" ")}") if @words.any?
        end

        def read_set
          refuse("there is no command \"#{verb}\"; expected one of: #{VERBS.join(", ")}, dump") unless
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
          refuse("#{set} takes no restrictions") if region? && @restrictions.any?
        end

        def read_signature(word)
          refuse("unexpected: #{word}") if @restrictions[:signature]
          @restrictions[:signature] = word
        end

        def read_switch(word)
          switch = word.downcase
          names = SWITCHES[switch] || refuse("memprof core has no switch #{word}")
          value = @words.shift || refuse("#{word} needs a value")
          return (@restrictions[:extend] ||= []) << value if switch == "/extend"

          value = number(word, value) unless names == %i[sort]
          names.each { |name| SHOWN.include?(name) ? show(name, value) : @restrictions[name] = value }
        end

        def show(name, value)
          case name
          when :skip then @skip = value
          when :limit then @limit = value
          else
            known = %w[bytes counts].include?(value)
            refuse("invalid /sortby \"#{value}\"; expected bytes or counts") unless known
            @sort = value
          end
        end

        def address_from(word)
          address = @words.shift
          refuse("#{word} needs an address") unless address
          refuse("\"#{address}\" is no address") unless HEX.match?(address)
          address.downcase
        end

        # As in chap, numbers are hexadecimal; sizes may have a unit.
        def number(name, text)
          return Integer(text, 16) if text && HEX.match?(text)

          ByteSize.read(text.to_s)
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
