# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof trace`: the cost of traced requests.
    class Trace < HeapCommand
      # Costs shown in the rows of requests; the first one is always shown.
      SHOWN = %w[time objects gc fd mysql postgres sqlite memcache redis http].freeze
      # Costs of clients that talk to servers.
      CLIENTS = %w[mysql postgres memcache redis http].freeze
      HEADINGS = {
        "time" => "Time", "objects" => "Objects", "gc" => "GC", "fd" => "I/O", "mysql" => "MySQL",
        "postgres" => "Postgres", "sqlite" => "SQLite", "memcache" => "Memcache", "redis" => "Redis",
        "http" => "HTTP"
      }.freeze
      PERCENTILES = %i[p50 p90 p95 p99].freeze
      private_constant :SHOWN, :CLIENTS, :HEADINGS, :PERCENTILES

      SUMMARY = "shows what traced requests cost"
      USAGE = "[OPTIONS] FILE"
      DETAILS = <<~TEXT
        FILE is a log of Memprof::Tracer, Memprof.trace_request or Memprof.trace, one
        line per request; the format of memprof 0.3 works, too. `-` reads stdin.

        --sort takes any cost that the second table lists: time, objects, gc, fd_calls,
        mysql, redis_calls and so on.

        Examples:
          memprof trace /tmp/memprof_tracer-4711.json
          memprof trace --sort objects --limit 5 requests.json
          memprof trace --by path --format csv requests.json
      TEXT

      def call(arguments)
        file, = expect_arguments(arguments, "FILE")
        by = option(:by)
        sort = option(:sort)
        answer = read(file, by: by, sort: sort, limit: option(:limit))
        check(answer, file, sort)
        warn_of_broken(answer, file)
        present(answer) { |page| lay_out(page, answer) }
      end

      private

      def read(file, **options)
        check_readable(file)
        load_library
        loading = Loading.new(@terminal, file)
        sum = loading.reading do
          file == "-" ? sum_up($stdin, loading, options) : File.open(file) { |io|
                                                             sum_up(io, loading, options)
                                                           }
        end
        JSON.parse(sum, symbolize_names: true)
      rescue Memprof::Error => e
        raise UsageError, "cannot read #{file}: #{e.message}"
      end

      def sum_up(io, loading, options)
        total = io.stat.file? ? io.stat.size : 0
        Native.sum_up_requests(io.fileno, JSON.generate(options)) { |done|
          loading.show(:reading, done, total)
        }
      end

      def check(answer, file, sort)
        kinds = answer.delete(:kinds)
        if answer[:requests].zero?
          refuse_other_kind(file, "a log of traced requests", :trace)
          broken = "; #{skipped(answer)}" if answer[:broken].positive?
          raise UsageError, "no traced requests in #{file}#{broken}"
        end
        return if kinds.include?(sort)

        raise UsageError, "invalid --sort \"#{sort}\"; expected one of: #{kinds.join(", ")}"
      end

      def skipped(answer)
        "skipped #{Units.plural(answer[:broken], "invalid line")}, the first is line #{answer[:first_broken]}"
      end

      def warn_of_broken(answer, file)
        return if answer[:broken].zero?

        @terminal.warn("#{file}: #{skipped(answer)}")
      end

      def lay_out(page, answer)
        period = ", #{answer[:from]} to #{answer[:to]}" if answer[:from]
        page.heading("#{Units.plural(answer[:requests], "request")}#{period}, most #{answer[:sort]} first")
        page.listing(groups(answer))
        more(page, answer[:more_groups], "group")
        page.listing(costs(answer), heading: "Costs per request")
        overlaps(answer)&.then { |sentence| page.note(sentence) }
        page.listing(statements(answer), heading: "SQL statements")
        more(page, answer[:more_statements], "statement")
        page.listing(allocations(answer), heading: "Lines that allocate the most objects")
        more(page, answer[:more_allocations], "line")
        page.listing(worst(answer), heading: "Requests with the most #{answer[:sort]}")
        more(page, answer[:more_worst], "request")
      end

      def groups(answer)
        listing = Listing.new.column(answer[:by].to_s.capitalize, :name, answer[:by], from: :name)
          .columns(:requests)
          .columns(:cost_total, as: "#{answer[:sort]}_total", kind: unit(answer[:sort]), from: :cost)
        PERCENTILES.each do |name|
          listing.column(name.to_s, :seconds, "time_#{name}", spare: true) { |one| cost(one, "time", name) }
        end
        columns_of(answer).each do |kind|
          listing.column("#{heading(kind)}/req", unit(kind), "#{kind}_mean", spare: true) do |group|
            rounded(cost(group, kind, :mean), unit(kind))
          end
        end
        listing.rows(answer[:groups])
      end

      def cost(group, kind, name) = group[:costs].find { |cost| cost[:kind] == kind }&.fetch(name)

      # Whole objects and bytes: fractions are meaningless.
      def rounded(number, unit) = unit == :seconds ? number : number&.round

      def costs(answer)
        listing = Listing.new.columns(:cost, as: :kind)
        [:total, :mean, *PERCENTILES, :max].each do |name|
          is_percentile = PERCENTILES.include?(name)
          heading = is_percentile ? name.to_s : name.to_s.capitalize
          listing.column(heading, :number, name, spare: is_percentile) do |cost|
            unit = cost[:unit].to_sym
            Cell.text(rounded(cost[name], unit), unit)
          end
        end
        listing.rows(answer[:costs])
      end

      def worst(answer)
        listing = Listing.new.columns(:line).columns(:request, as: :path)
          .columns(:status, spare: true)
        ["time", *columns_of(answer)].uniq.each do |kind|
          listing.column(heading(kind), unit(kind), kind, spare: kind != answer[:sort]) do |row|
            row[:costs][kind.to_sym]
          end
        end
        listing.rows(answer[:worst])
      end

      # Sorted by the number of requests in which a line repeats a statement.
      def statements(answer)
        Listing.new.columns(:n_plus_one) { |row| row[:n_plus_one].nonzero? }
          .columns(:queries)
          .columns(:requests, spare: true).columns(:seconds, as: :time)
          .columns(:slowest, spare: true).columns(:sql, :caller)
          .rows(answer[:statements])
      end

      # Each request lists only its top lines.
      def allocations(answer)
        Listing.new.columns(:count, as: :objects).columns(:bytes)
          .columns(:requests, spare: true).columns(:class)
          .columns(:site, as: :location)
          .rows(answer[:allocations])
      end

      # The costs that any request has, and the sort key.
      def columns_of(answer)
        there = answer[:costs].map { |cost| cost[:kind] }
        [answer[:sort], *(SHOWN & there)].uniq
      end

      # Which times include others, as they don't add up.
      def overlaps(answer)
        there = answer[:costs].map { |cost| cost[:kind] }.select { |kind| unit(kind) == :seconds }
        return if there.size < 2

        clients = CLIENTS & there
        parts = ["time includes all others"]
        parts << "views includes sql" if (there & %w[views sql]).size == 2
        databases = %w[mysql postgres sqlite] & there
        parts << "sql includes #{databases.join(", ")}" if there.include?("sql") && !databases.empty?
        with_clients = there.include?("fd") && !clients.empty?
        parts << "fd includes the system calls of #{clients.join(", ")}" if with_clients
        parts << "gc interrupts any of them" if there.include?("gc")
        "Times overlap: #{parts.join("; ")}."
      end

      def heading(kind) = HEADINGS.fetch(kind, kind)

      def unit(kind) = Native.unit_of_cost(kind.to_s).to_sym
    end
  end
end
