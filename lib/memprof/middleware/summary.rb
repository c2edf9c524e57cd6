# frozen_string_literal: true

require_relative "../rails_action"
require_relative "../redaction"

module Memprof
  class Middleware
    # What one request allocated, for people and for programs: the lines that allocated most come first, with
    # the objects that were freed in between.
    class Summary
      # Rows of a table, unless said otherwise.
      LIMIT = 20
      SITE = %i[file line method class gem].freeze
      private_constant :SITE

      attr_reader :report

      # `collected` says whether garbage was collected, so that what is alive is what is retained; `first`,
      # which lines come first in text.
      def initialize(report, env, status, collected:, limit: nil, first: :allocated)
        @first = first
        @report = report
        @env = env
        @status = status
        @collected = collected
        @limit = limit || LIMIT
      end

      # As `GET /orders?page=2 200, orders#index`.
      def title
        line = [@env["REQUEST_METHOD"], url, @status].compact.join(" ")
        Printable.line(action ? "#{line}, #{action}" : line)
      end

      def totals
        allocated = Units.objects(report.total_allocated, report.total_allocated_memsize)
        alive = Units.objects(report.total_retained, report.total_retained_memsize)
        "#{allocated} allocated, #{alive} #{@collected ? "retained" : "alive at its end"}"
      end

      def to_s
        overview = Report::Overview.new(report, limit: @limit)
        tables = [table(overview.allocated, overview, :allocated)]
        tables << table(overview.retained, overview, :retained) if @collected
        tables.reverse! if @first == :retained
        ["#{title}\n#{totals}\n", *tables.compact].join("\n")
      end

      def to_h
        {
          request: { method: @env["REQUEST_METHOD"], url: url, status: @status, action: action },
          totals: report.totals, retained_after_gc: @collected,
          allocated: rows(:allocated), retained: rows(:retained),
          classes: groups("class"), gems: groups("gem"), meta: report.meta
        }
      end

      # Lines with their numbers, those with most bytes first.
      def rows(kind)
        sites = report.listed.places(kind, limit: @limit).last
        sites.map { |site| site.to_h.slice(*SITE, :allocated, :retained, :freed) }
      end

      # What was allocated, and of that retained, by "class" or "gem".
      def groups(by)
        all = report.listed.sites.group_by { |site| by == "gem" ? site.gem : site.class_name }
        groups = all.map do |name, sites|
          { name: name, allocated_bytes: sites.sum(&:allocated_bytes),
            allocated_objects: sites.sum(&:allocated_objects), retained_bytes: sites.sum(&:retained_bytes) }
        end
        groups.sort_by { |group| [-group[:allocated_bytes], group[:name]] }.first(@limit)
      end

      private

      def table(table, overview, kind)
        return if table.empty?

        table.to_text + overview.shares(kind).map { |by, text| format("  by %-6s %s\n", by, text) }.join
      end

      def action
        controller, action = RailsAction.of(@env)
        controller && Printable.utf8("#{controller}##{action}")
      end

      def url
        path = "#{@env["SCRIPT_NAME"]}#{@env["PATH_INFO"]}"
        query = Redaction.query(@env["QUERY_STRING"].to_s, @env)
        Printable.utf8(query.empty? ? path : "#{path}?#{query}")
      end
    end
  end
end
