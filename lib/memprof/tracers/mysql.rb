# frozen_string_literal: true

require_relative "client"

module Memprof
  module Tracers
    # `mysql`, the part of the gem trilogy: queries by kind of statement. The extension traces C libraries,
    # and both appear in one report.
    class Mysql < Client
      # Allowed before a statement: blanks, comments, an opening parenthesis.
      BEFORE = %r{\A(?:\s+|/\*.*?\*/|(?:--\s|\#)[^\n]*(?:\n|\z)|\()*}m
      KINDS = %w[select insert update delete].freeze
      private_constant :BEFORE, :KINDS

      def self.kind(sql)
        text = sql.to_s.b.sub(BEFORE, "")
        word = text[/\A[a-z]+/i].to_s.downcase
        KINDS.include?(word) ? word : "unknown"
      end

      # Prepended to Trilogy.
      module Queries
        def query(sql)
          Mysql.running.empty? ? super : Mysql.measure(sql) { super }
        end
      end

      hook "Trilogy", Queries

      def initialize
        super
        @total = {}
        @kinds = {}
      end

      def measured(time, wait, sql, _)
        kind = @kinds[self.class.kind(sql)] ||= {}
        [@total, kind].each { |numbers| count(numbers, time, wait, "queries") }
      end

      def report = @kinds.empty? ? {} : { **@total, "types" => @kinds }
    end
  end
end
