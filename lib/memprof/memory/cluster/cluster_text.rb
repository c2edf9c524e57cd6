# frozen_string_literal: true

require_relative "../../table"
require_relative "../headed_table"

module Memprof
  class Memory
    class Cluster
      # The memory of a cluster for people: a heading, a row for each process, and further facts.
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
          "That is the sum of PSS, in which a page that n processes share counts 1/n. The sum of RSS is " \
            "#{bytes(@cluster.rss)}."
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
