# frozen_string_literal: true

require_relative "memory_text"

module Memprof
  class Memory
    # The memory of a process and of those forked from it, such as the workers of a server. Measured by
    # {Memprof.cluster_memory}. Sizes are in bytes.
    #
    # @example What do all workers take together?
    #   cluster = Memprof.cluster_memory
    #   cluster.pss == cluster.processes.sum { |process| process[:pss] } # => true
    #   puts cluster
    class Cluster
      # The items of a process that Ruby uses.
      RUBY = %i[slots slots_used slots_free objects iseqs].freeze
      private_constant :RUBY

      class << self
        # The block returns the {Memory} of a process as measured by itself, or nil.
        #
        # @api private
        def of(pid)
          Loading.json
          answer = JSON.parse(Native.memory_of_cluster(pid), symbolize_names: true)
          new(answer) { |process| yield(process) if block_given? }
        rescue Memprof::Error => e
          of = pid ? "process #{pid}" : "this process"
          raise Error, "cannot measure the memory of #{of} and its workers: #{e.message}"
        end
      end

      # @return [Array<Hash{Symbol => Object}>] the process itself, then those forked from it: `:pid`,
      #   `:parent`, `:name` (its title), `:rss`, `:pss`, `:private` (in no other process), `:shared`,
      #   `:swap`, and `:ruby`: objects, instruction sequences and free slots, nil if unknown
      attr_reader :processes

      # @api private
      def initialize(answer)
        processes = answer[:processes].map do |process|
          memory = yield(process[:pid])
          process.merge(ruby: memory && RUBY.sum { |key| memory[key] })
        end
        @answer = answer.merge(processes: processes)
        @processes = processes.each(&:freeze).freeze
        freeze
      end

      # @return [Integer] the requested process; by default, the one from which this one was forked
      # @example
      #   Memprof.cluster_memory(Process.pid).pid == Process.pid # => true
      def pid = @answer[:pid]

      # @return [Integer] total memory of all processes: a page shared by n processes counts 1/n
      # @example
      #   Memprof.cluster_memory.pss
      def pss = @answer[:pss]

      # @return [Integer] the sum of their RSS, which counts a shared page n times
      # @example
      #   Memprof.cluster_memory.rss >= Memprof.cluster_memory.pss # => true
      def rss = @answer[:rss]

      # @return [Integer, nil] the process that {#pid} itself was forked from, if it is still running
      # @example
      #   Memprof.cluster_memory.forked_from
      def forked_from = @answer[:forked_from]

      # @return [Hash{Symbol => Integer}] other programs that they started: `:processes`, `:pss`
      # @example
      #   Memprof.cluster_memory.others[:pss]
      def others = @answer[:others]

      # @return [Integer] processes in no sum, because they ended while being measured, or can't be read
      # @example
      #   Memprof.cluster_memory.skipped
      def skipped = @answer[:skipped]

      # Everything as plain values.
      #
      # @return [Hash{Symbol => Object}]
      # @example
      #   Memprof.cluster_memory.to_h[:processes].first[:pid]
      def to_h = { format: "memprof-cluster", version: 1 }.merge(@answer)

      # Everything as JSON.
      #
      # @return [String]
      # @example
      #   puts Memprof.cluster_memory.to_json
      def to_json(*state)
        Loading.json
        to_h.to_json(*state)
      end

      # The processes as a table.
      #
      # @param color [Boolean] with colours for a terminal
      # @return [String]
      # @example
      #   puts Memprof.cluster_memory.to_s
      def to_s(color: false) = ClusterText.new(self).to_s(color: color)

      # @return [String] for the console
      # @example
      #   p Memprof.cluster_memory
      def inspect = "#<#{self.class} of #{pid}: #{processes.size} processes, #{pss} bytes>"

      # The memory of a cluster for people: a heading, a row for each process, and further facts.
      # @api private
      class ClusterText
        include HeadedTable

        COLUMNS = %i[rss pss private shared swap ruby].freeze

        def initialize(cluster)
          @cluster = cluster
        end

        def heading = "#{Units.plural(@cluster.processes.size, "process")}, #{bytes(@cluster.pss)} together"

        # Columns with any data.
        def columns
          COLUMNS.reject { |key| @cluster.processes.all? { |process| [nil, 0].include?(process[key]) } }
        end

        def sentences = [sum, others, skipped, forked_from].compact

        private

        def table
          table = Table.new
          columns.each { |key| table.columns(key, style: (:red if key == :pss)) }
          table.columns(:pid).columns(:process, style: :cyan)
          @cluster.processes.each do |process|
            sizes = columns.map { |key| process[key] ? bytes(process[key]) : "" }
            table.row(*sizes, process[:pid].to_s, process[:name])
          end
          table
        end

        def sum
          "This is the sum of PSS (shared pages split among processes). " \
            "The sum of RSS is #{bytes(@cluster.rss)}."
        end

        def others
          count, pss = @cluster.others.values_at(:processes, :pss)
          return if count.zero?

          "#{Units.plural(count, "other program")} that they have started take#{"s" if count == 1} " \
            "#{bytes(pss)} more."
        end

        def skipped
          return if @cluster.skipped.zero?

          "Not counted: #{Units.plural(@cluster.skipped, "process")} that ended while measured, or may not " \
            "be read."
        end

        def forked_from
          return unless @cluster.forked_from

          "#{@cluster.pid} was itself forked from #{@cluster.forked_from}."
        end
      end
    end
  end
end
