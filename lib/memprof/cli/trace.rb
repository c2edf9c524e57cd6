# frozen_string_literal: true

require_relative "heap_command"
require_relative "../trace/log"

module Memprof
  module CLI
    # `memprof trace`: what traced requests cost.
    #
    # @api private
    class Trace < HeapCommand
      GROUPS = %i[action path status].freeze
      # Which costs the rows of requests show, the first of them always.
      SHOWN = %w[time objects gc fd mysql postgres sqlite memcache redis http].freeze
      HEADINGS = {
        "time" => "Time", "objects" => "Objects", "gc" => "GC", "fd" => "I/O", "mysql" => "MySQL",
        "postgres" => "Postgres", "sqlite" => "SQLite", "memcache" => "Memcache", "redis" => "Redis",
        "http" => "HTTP"
      }.freeze
      PERCENTILES = %i[p50 p90 p95 p99].freeze
      private_constant :GROUPS, :SHOWN, :HEADINGS, :PERCENTILES

      SUMMARY = "shows what traced requests cost"
      USAGE = "[OPTIONS] FILE"
      DETAILS = <<~TEXT
        FILE is what Memprof::Tracer, Memprof.trace_request or Memprof.trace wrote,
        one line for each request; also that of memprof 0.3. `-` reads stdin.

        KIND is one of the costs that the second table lists: time, objects, gc,
        fd_calls, mysql, redis_calls and so on.

        Examples:
          memprof trace /tmp/memprof_tracer-4711.json
          memprof trace --sort objects --limit 5 requests.json
          memprof trace --by path --format csv requests.json
      TEXT

      # @param arguments [Array<String>] a file of requests
      # @return [Integer] exit status
      # @raise [UsageError] if it can't be read, or has no requests
      def call(arguments)
        file, = expect_arguments(arguments, "FILE")
        log = read(file)
        sort = sort(log)
        by = @options.fetch(:by, :action)
        limit = @options.fetch(:limit, 10)
        answer = answer(log, by, sort, limit)
        warn_of_broken(log, file)
        present(answer) { |page| lay_out(page, answer) }
      end

      private

      def define_options(parser)
        one_of(parser, GROUPS, "--by WHAT", "group by action (default), path or status", :by)
        text(parser, "--sort KIND", "most of this cost first (default: time)", :sort)
        limit(parser, "the first N groups and requests", 10)
        define_format(parser)
      end

      def read(file)
        check_readable(file)
        reader = Memprof::Trace::Log
        log = file == "-" ? reader.read($stdin) : File.open(file, "rb") { |io| reader.read(io) }
        return log unless log.entries.empty?

        broken = "; #{plural(log.broken, "line")} passed over, the first is line #{log.first_broken}" if
          log.broken.positive?
        raise UsageError, "no traced request in #{file}#{broken}"
      end

      def sort(log)
        kind = @options.fetch(:sort, "time")
        return kind if log.kinds.include?(kind)

        raise UsageError, "#{kind} is no cost of these requests; there are: #{log.kinds.join(", ")}"
      end

      def warn_of_broken(log, file)
        return if log.broken.zero?

        @terminal.warn("#{file}: #{plural(log.broken, "line")} passed over as no request, " \
                       "the first is line #{log.first_broken}")
      end

      def answer(log, by, sort, limit)
        groups = log.groups(by, sort)
        worst = log.worst(sort)
        { requests: log.entries.size, broken: log.broken, first_broken: log.first_broken, by: by, sort: sort,
          from: time(log, :min), to: time(log, :max), groups: groups.first(limit),
          more_groups: [groups.size - limit, 0].max, costs: log.costs,
          worst: worst.first(limit).map { |entry| worst_row(entry) },
          more_worst: [worst.size - limit, 0].max }
      end

      def time(log, which)
        log.entries.filter_map(&:start).public_send(which)&.utc&.strftime("%Y-%m-%dT%H:%M:%S.%6NZ")
      end

      def worst_row(entry)
        { line: entry.line, action: entry.action, path: entry.path, status: entry.status,
          start: entry.start&.utc&.strftime("%Y-%m-%dT%H:%M:%S.%6NZ"), costs: entry.costs }
      end

      def lay_out(page, answer)
        period = ", #{answer[:from]} to #{answer[:to]}" if answer[:from]
        page.heading("#{plural(answer[:requests], "request")}#{period}, most #{answer[:sort]} first")
        page.listing(groups(answer))
        more(page, answer[:more_groups], "group")
        page.listing(costs(answer), heading: "What a request costs")
        page.listing(worst(answer), heading: "Requests with most #{answer[:sort]}")
        more(page, answer[:more_worst], "request")
      end

      def groups(answer)
        shown = columns_of(answer)
        listing = Listing.new.column(answer[:by].to_s.capitalize, :name, answer[:by])
          .column("Requests", :count, :requests)
        listing.column("Total", unit(answer[:sort]), "#{answer[:sort]}_total")
        PERCENTILES.each { |name| listing.column(name.to_s, :seconds, "time_#{name}", spare: true) }
        shown.each { |kind| listing.column("#{heading(kind)}/req", unit(kind), "#{kind}_mean", spare: true) }
        answer[:groups].each do |group|
          costs = group[:costs].to_h { |cost| [cost[:kind], cost] }
          listing.row(group[:name], group[:requests], group[:cost],
            *PERCENTILES.map { |name| costs.dig("time", name) },
            *shown.map { |kind| mean(kind, costs) })
        end
        listing
      end

      # Whole objects and bytes: a fraction of one tells nothing.
      def mean(kind, costs)
        mean = costs.dig(kind, :mean)
        unit(kind) == :seconds || mean.nil? ? mean : mean.round
      end

      def costs(answer)
        listing = Listing.new.column("Cost", :name, :kind).column("Total", :number, :total)
          .column("Mean", :number, :mean)
        PERCENTILES.each { |name| listing.column(name.to_s, :number, name, spare: true) }
        listing.column("Most", :number, :max)
        answer[:costs].each do |cost|
          numbers = [cost[:total], cost[:mean], *cost.values_at(*PERCENTILES), cost[:max]]
          numbers = numbers.map { |number| cost[:unit] == :seconds ? number : number.round }
          listing.row(cost[:kind], *numbers.map { |number| Cell.text(number, cost[:unit]) })
        end
        listing
      end

      def worst(answer)
        shown = ["time", *columns_of(answer)].uniq
        listing = Listing.new.column("Line", :count, :line).column("Request", :name, :path)
          .column("Status", :number, :status, spare: true)
        shown.each { |kind| listing.column(heading(kind), unit(kind), kind, spare: kind != answer[:sort]) }
        answer[:worst].each do |row|
          listing.row(row[:line], row[:path], row[:status], *shown.map { |kind| row[:costs][kind] })
        end
        listing
      end

      # Those that any request has, and the one that is asked for.
      def columns_of(answer)
        there = answer[:costs].map { |cost| cost[:kind] }
        [answer[:sort], *(SHOWN & there)].uniq
      end

      def heading(kind)
        HEADINGS.fetch(kind, kind)
      end

      def unit(kind)
        Memprof::Trace::Log::Entry.unit(kind)
      end
    end
  end
end
