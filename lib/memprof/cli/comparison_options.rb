# frozen_string_literal: true

require_relative "../check/limits"

module Memprof
  module CLI
    # Shared by the commands that compare reports.
    module ComparisonOptions
      private

      def check_report(path)
        check_readable(path, stdin: false)
        return if Memprof::Check::Comparison.report?(path)

        raise UsageError, "#{path} is not a report; write one with `memprof run --format json --output PATH`"
      end

      def compared(before, after)
        Memprof::Check::Comparison.of_files(before, after, **{ measure: @options[:sort] }.compact,
          internal: @options.fetch(:internal, false))
      rescue ArgumentError => e
        raise UsageError, e.message
      end

      # Prints a comparison; the status is 1 if a limit is exceeded.
      def conclude(comparison, limits)
        outcomes = limits.judge(comparison)
        failed = outcomes.find(&:failed)
        comparison = comparison.by(failed.measure) if failed && !@options[:sort]
        comparing = Comparing.new(comparison, outcomes, @options, format: output_format, rows: option(:limit))
        status = deliver(comparing.to_s(**screen))
        status.zero? && comparing.failed? ? ExitStatus::FOUND : status
      end
    end
  end
end
