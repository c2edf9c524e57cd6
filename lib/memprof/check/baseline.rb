# frozen_string_literal: true

require "json"
require_relative "../output"

module Memprof
  module Check
    # The reference for later measurements: the report of a run, with those of further runs in it.
    module Baseline
      KEPT = %w[format version meta totals sites sources].freeze
      FURTHER = %w[meta totals sites].freeze
      private_constant :KEPT, :FURTHER

      def self.write(path, files)
        first, *others = files.map { |file| JSON.parse(File.read(file, encoding: Encoding::UTF_8)) }
        runs = others.map { |report| without_stacks(report.slice(*FURTHER)) }
        Output.write(path, "#{JSON.generate(without_stacks(first.slice(*KEPT)).merge("runs" => runs))}\n")
      end

      def self.without_stacks(report)
        report.merge("sites" => report.fetch("sites").map { |site| site.except("stack") })
      end
      private_class_method :without_stacks
    end
  end
end
