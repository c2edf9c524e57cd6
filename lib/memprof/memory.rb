# frozen_string_literal: true

require_relative "errors"
require_relative "loading"
require_relative "native"

module Memprof
  # Where the memory of a process goes: items that add up to its RSS. Created by {Memprof.memory} for this
  # process or another one, and by {Heap#memory} for a process that wrote a dump.
  #
  # Each item has an accuracy: `exact` is measured to the page, `estimate` is counted by malloc or by Ruby,
  # which both leave something out, and `difference` is the rest. Sizes are in bytes.
  #
  # @example How much do Ruby objects take, and how much native memory not owned by Ruby objects?
  #   memory = Memprof.memory
  #   memory.items.sum(&:bytes) == memory.rss # => true
  #   puts memory
  class Memory
    autoload :Cluster, "#{__dir__}/memory/cluster"
    autoload :MemoryText, "#{__dir__}/memory/memory_text"

    # A part of the RSS. Frozen.
    class Item
      # @return [Symbol] a stable name, such as `:slots_used`
      attr_reader :key
      # @return [String] for people
      attr_reader :name
      # @return [Integer] resident bytes
      attr_reader :bytes
      # @return [Symbol] `:exact`, `:estimate`, `:difference`
      attr_reader :accuracy

      # @api private
      def initialize(item)
        @key = item[:key].to_sym
        @name = item[:name].freeze
        @bytes = item[:bytes]
        @accuracy = item[:accuracy].to_sym
        freeze
      end

      # @return [String] for the console
      # @example
      #   p Memprof.memory.items.first
      def inspect = "#<#{self.class} #{key}: #{bytes} bytes>"
    end

    class << self
      # @api private
      def of(pid)
        Loading.json
        new(JSON.parse(pid ? Native.memory_of(pid) : Native.memory, symbolize_names: true))
      rescue Memprof::Error => e
        raise Error, "cannot measure the memory of #{pid ? "process #{pid}" : "this process"}: #{e.message}"
      end
    end

    # @return [Array<Item>] items that have any bytes
    attr_reader :items

    # @api private
    def initialize(answer)
      @answer = answer
      @items = answer[:items].map { |item| Item.new(item) }.freeze
      freeze
    end

    # @return [Integer] resident memory: the sum over all mappings
    # @example
    #   Memprof.memory.rss > 1_000_000 # => true
    def rss = @answer[:rss]

    # @return [Integer, nil] the same, but a page shared by n processes counts 1/n. Summed up over the workers
    #   of a cluster, it is their total. Nil in the dump of a forked child
    # @example
    #   memory = Memprof.memory
    #   memory.pss <= memory.rss # => true
    def pss = @answer[:pss]

    # @return [Integer, nil] the part of the RSS that is in no other process and is freed at exit. Nil in the
    #   dump of a forked child
    # @example
    #   memory = Memprof.memory
    #   memory.private_bytes <= memory.rss # => true
    def private_bytes = @answer[:private]

    # @return [Integer] swapped out, thus not in the RSS
    # @example
    #   Memprof.memory.swap
    def swap = @answer[:swap]

    # @return [Integer, nil] the lowest limit of the process's cgroups, or nil
    # @example
    #   Memprof.memory.limit
    def limit = @answer.dig(:cgroup, :limit)

    # @return [Integer, nil] memory used by that cgroup, including all its processes and cached files
    # @example
    #   Memprof.memory.cgroup_used
    def cgroup_used = @answer.dig(:cgroup, :used)

    # @return [Integer, nil] memory still available in that cgroup: cached files that were not used for a
    #   while count as free. Nil without a limit
    # @example
    #   Memprof.memory.room
    def room = limit && [limit - cgroup_used + @answer.dig(:cgroup, :idle_files).to_i, 0].max

    # @return [String, nil] `"glibc"`, `"jemalloc"`, or nil if the allocator's statistics are unknown
    # @example
    #   Memprof.memory.allocator
    def allocator = @answer.dig(:allocator, :name)

    # @return [Array<Hash{Symbol => Integer}>] `:in_use` and `:free` of each malloc arena, resident or not;
    #   the main one first
    # @example
    #   Memprof.memory.arenas.sum { |arena| arena[:free] }
    def arenas = @answer.dig(:allocator, :arenas) || []

    # @param key [Symbol, String] of an item, such as `:slots_used`, `:objects`, `:iseqs`, `:malloc`
    # @return [Integer] its bytes; 0 without such an item
    # @example
    #   Memprof.memory[:slots_used].positive?
    def [](key)
      @items.find { |item| item.key == key.to_sym }&.bytes || 0
    end

    # The pages of Ruby's heap in a forked process: how many it shares, how many it shared with its parent
    # until one of the two wrote to them, and how many its parent does not have.
    #
    # @return [Hash{Symbol => Integer}, nil] `:parent` (its process id), and the bytes `:shared`, `:unshared`,
    #   `:new`; nil if the process was not forked, if its parent has ended, or if only /proc was read
    # @example
    #   Memprof.memory.sharing&.fetch(:unshared)
    def sharing = @answer[:sharing]

    # Everything as plain values.
    #
    # @return [Hash{Symbol => Object}]
    # @example
    #   Memprof.memory.to_h[:items].first.keys # => [:key, :name, :bytes, :accuracy]
    def to_h = { format: "memprof-memory", version: 1 }.merge(@answer)

    # Everything as JSON.
    #
    # @return [String]
    # @example
    #   puts Memprof.memory.to_json
    def to_json(*state)
      Loading.json
      to_h.to_json(*state)
    end

    # The items as a table.
    #
    # @param color [Boolean] with colours for a terminal
    # @return [String]
    # @example
    #   puts Memprof.memory.to_s
    def to_s(color: false) = MemoryText.new(self).to_s(color: color)

    # @return [String] for the console
    # @example
    #   p Memprof.memory
    def inspect = "#<#{self.class} #{rss} bytes resident>"
  end
end
