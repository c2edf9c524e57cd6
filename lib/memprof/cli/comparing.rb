# frozen_string_literal: true

require "json"
require_relative "../cell"
require_relative "../check/comparison"
require_relative "../check/github"
require_relative "../check/junit"
require_relative "../check/limits"
require_relative "../check/wording"

module Memprof
  module CLI
    # Prints a comparison of reports, for `memprof diff` and `memprof check`.
    class Comparing
      BY = %i[line class gem].freeze
      GROUPS = 5 # rows of the tables by class and gem, without a limit
      COLUMNS = {
        allocated_bytes: [:allocated, :growth], allocated_objects: [:count, :more],
        retained_bytes: [:retained_bytes, :growth], retained_objects: [:count, :more]
      }.freeze
      private_constant :GROUPS, :COLUMNS

      Words = Memprof::Check::Wording
      private_constant :Words

      # Options: `by:`, `limit:`. `rows`: of a table by line, or of the only one.
      def initialize(comparison, outcomes, options, format:, rows:)
        @comparison = comparison
        @outcomes = outcomes
        @options = options
        @format = format
        @rows = rows
      end

      def failed? = @outcomes.any?(&:failed)

      # The comparison in a format. `width` is the width of the screen, if any.
      def to_s(width: nil, paint: Paint.new)
        case @format
        when :json then "#{JSON.pretty_generate(document)}\n"
        when :github then Memprof::Check::Github.new(@comparison, @outcomes, **limit).to_s
        when :junit then Memprof::Check::Junit.new(@comparison, @outcomes, **limit).to_s
        when :csv then listing(@options.fetch(:by, :line)).to_csv
        else page(width, paint).to(@format)
        end
      end

      private

      def limit = @options.slice(:limit)

      def document
        answer = @comparison.to_h
        if (limit = @options[:limit])
          lists = answer.slice(:lines, :classes, :gems)
          answer = answer.merge(lists.transform_values { |rows| rows.first(limit) })
        end
        { **answer, failed: failed?, limits: @outcomes.map(&:to_h) }
      end

      def page(width, paint)
        page = Page.new(width: width, paint: paint)
        page.heading(heading)
        page.facts("Allocated" => Words.kind(:allocated, totals), "Retained" => Words.kind(:retained, totals),
          "Internal" => internal)
        @outcomes.select(&:failed).each { |outcome| page.paragraph("Failed: #{outcome.text}.") }
        sections.each { |name, limit| section(page, name, limit) }
        page.paragraph("Lines: #{found}.") unless @comparison.matches.empty?
        @comparison.warnings.each { |warning| page.paragraph(Wording.note(warning)) }
        page
      end

      def totals = @comparison.totals

      def heading
        changed = totals.values.any? { |change| !change[:change].zero? }
        return "Nothing changed." unless changed || @comparison.lines.any?
        return "Totals did not change." unless changed

        "#{Words.difference(totals)}#{repeated}"
      end

      def repeated
        most = @comparison.runs.max
        most == 2 ? " in both runs" : " in each of #{most} runs" if most > 1
      end

      # VM-internal objects; nil without any.
      def internal
        internal = @comparison.internal
        return if internal.values.all? { |change| change.values.all?(&:zero?) }

        "not shown: #{Words.difference(internal).then { |text| text.empty? ? "no change" : text }}"
      end

      def sections
        return { @options[:by] => @rows } if @options[:by]

        BY.to_h { |name| [name, name == :line || @options[:limit] ? @rows : GROUPS] }
      end

      def section(page, name, limit)
        rows = @comparison.rows(name)
        page.listing(listing(name, limit), heading: "By #{name}")
        more = rows.size - limit
        page.note("... #{Units.plural(more, "more #{name}")} (--limit N)") if more.positive?
      end

      def listing(name, limit = nil)
        listing = Listing.new
        COLUMNS.each do |measure, (key, kind)|
          listing.columns(key, as: measure, kind: kind) { |row| row[measure][:change] }
        end
        if name == :line
          listing.columns(:class)
            .columns(:site, as: :location) { |row| row.slice(:file, :line, :method) }
            .columns(:match) { |row| Words.found(row) }
        else
          listing.columns(name, from: :name)
        end
        rows = @comparison.rows(name)
        listing.rows(limit ? rows.first(limit) : rows)
      end

      def found
        @comparison.matches.map do |way|
          "#{Units.count(way[:lines])} #{Words::WAYS.fetch(way[:match].to_sym)}"
        end.join(", ")
      end
    end

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
