# frozen_string_literal: true

require_relative "../rails_action"
require_relative "../redaction"

module Memprof
  class Middleware
    # The allocations of one request, for people and for programs: the lines that allocated most come first,
    # including objects that were freed in between.
    class Summary
      # Rows per table by default; JSON has all.
      LIMIT = 20
      SITE = %i[file line method class gem].freeze
      private_constant :SITE

      attr_reader :report

      # The request, without its environment.
      Request = Struct.new(:verb, :url, :status, :action) do
        def self.of(env, status)
          path = "#{env["SCRIPT_NAME"]}#{env["PATH_INFO"]}"
          query = Redaction.query(env["QUERY_STRING"].to_s, env)
          controller, action = RailsAction.of(env)
          new(env["REQUEST_METHOD"], Printable.utf8(query.empty? ? path : "#{path}?#{query}"), status,
            controller && Printable.utf8("#{controller}##{action}"))
        end

        # As `GET /orders?page=2 200, orders#index`.
        def to_s
          line = [verb, url, status].compact.join(" ")
          Printable.line(action ? "#{line}, #{action}" : line)
        end

        def to_h = { method: verb, url: url, status: status, action: action }
      end

      # The tables of a report. For retained objects, lines of the application precede those of libraries: a
      # line of the application usually causes what a library retains.
      class Overview < Report::Overview
        def places(kind)
          all = @listed.sites.size
          return @listed.places(kind, limit: @limit || all) unless kind == :retained

          count, sites = @listed.places(kind, limit: all)
          own = Hash.new { |files, file| files[file] = Paths.application?(file) }
          [count, sites.partition { |site| own[site.file] }.flatten(1).first(@limit || count)]
        end
      end
      private_constant :Overview

      # `retained` says whether live objects are those that the request retains, or those alive at its end.
      def initialize(report, request, retained:, limit: nil)
        @report = report
        @request = request
        @retained = retained
        @limit = limit
      end

      def title = @request.to_s

      # The label for live objects.
      def alive = @retained ? "retained" : "alive at its end"

      def totals
        allocated = Units.objects(report.total_allocated, report.total_allocated_memsize)
        alive = Units.objects(report.total_retained, report.total_retained_memsize)
        "#{allocated} allocated, #{alive} #{self.alive}"
      end

      def to_s
        overview = overview(@limit || LIMIT)
        tables = [table(overview.allocated, overview, :allocated)]
        tables.unshift(table(overview.retained, overview, :retained)) if @retained
        ["#{title}\n#{totals}\n", *tables.compact].join("\n")
      end

      def to_h
        {
          request: @request.to_h, totals: report.totals, retained_after_gc: @retained,
          allocated: rows(:allocated, @limit), retained: rows(:retained, @limit),
          classes: groups("class", @limit), gems: groups("gem", @limit), meta: report.meta
        }
      end

      # Lines with their numbers.
      def rows(kind, limit = @limit || LIMIT)
        overview(limit).places(kind).last.map { |site| site.to_h.slice(*SITE, :allocated, :retained, :freed) }
      end

      # Allocations, and the retained part of them, by "class" or "gem".
      def groups(by, limit = @limit || LIMIT)
        all = report.listed.sites.group_by { |site| by == "gem" ? site.gem : site.class_name }
        groups = all.map do |name, sites|
          { name: name, allocated_bytes: sites.sum(&:allocated_bytes),
            allocated_objects: sites.sum(&:allocated_objects), retained_bytes: sites.sum(&:retained_bytes) }
        end
        groups.sort_by { |group| [-group[:allocated_bytes], group[:name]] }.first(limit || groups.size)
      end

      private

      def overview(limit) = Overview.new(report, limit: limit)

      def table(table, overview, kind)
        return if table.empty?

        table.to_text + overview.shares(kind).map { |by, text| format("  by %-6s %s\n", by, text) }.join
      end
    end
  end
end
