# frozen_string_literal: true

require_relative "../check/limits"

module Memprof
  module CLI
    # What the commands that compare reports have in common.
    module ComparisonOptions
      private

      def max_increase(what)
        checked("--max-increase PERCENT", what, :max_increase, "a percentage, as 2%") do |text|
          Memprof::Check::Limits.percent(text)
        end
      end

      def comparison_options
        one_of(Comparing::BY, "--by WHAT", "only a table by line, class or gem", :by)
        one_of(Memprof::Check::Comparison::MEASURES, "--sort WHAT",
          "allocated_bytes (default), allocated_objects,", "retained_bytes, retained_objects", :sort)
        count("--limit N", "the first N of each table (default: 20)", :limit)
        flag("--internal", "with internal objects of the VM", :internal)
      end

      def check_report(path)
        check_readable(path, stdin: false)
        return if Memprof::Check::Comparison.report?(path)

        raise UsageError, "#{path} is not a report; write one with `memprof run --format json --output PATH`"
      end

      def compared(before, after)
        Memprof::Check::Comparison.of_files(before, after, measure: @options.fetch(:sort, :allocated_bytes),
          internal: @options.fetch(:internal, false))
      rescue ArgumentError => e
        raise UsageError, e.message
      end

      # Prints a comparison; the status is 1 if a limit is exceeded.
      def conclude(comparison, limits)
        outcomes = limits.judge(comparison)
        failed = outcomes.find(&:failed)
        comparison = comparison.by(failed.measure) if failed && !@options[:sort]
        comparing = Comparing.new(comparison, outcomes, @options)
        status = deliver(comparing.to_s(**screen))
        status.zero? && comparing.failed? ? 1 : status
      end
    end
  end
end
