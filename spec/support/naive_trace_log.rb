# frozen_string_literal: true

require "json"

# Reads the same files as the crate memprof-trace, in the simplest way: the specs compare both.
class NaiveTraceLog
  # SQL statements of requests, by text and caller: repeated ones first, then the slowest.
  module Statements
    LARGEST = 10**18
    # Maximum number per request.
    MOST = 1000
    NUMBERS = %w[queries time slowest].freeze
    private_constant :LARGEST, :MOST, :NUMBERS

    class << self
      # The statements of a tracer's record, which may contain anything.
      def of(sql)
        list = sql["statements"] if sql.is_a?(Hash)
        return [] unless list.is_a?(Array)

        list.filter_map { |one| statement(one) }.first(MOST)
      end

      def sum_up(lists)
        rows = lists.flatten.group_by { |one| one.values_at(:sql, :caller) }.map do |(sql, caller), all|
          { sql: sql, caller: caller, requests: all.size,
            n_plus_one: all.count { |one| one[:n_plus_one] }, queries: sum(all, :queries),
            time: sum(all, :time), slowest: all.map { |one| one[:slowest] }.max }
        end
        rows.sort_by do |row|
          [row[:n_plus_one].positive? ? 0 : 1, -row[:time], row[:sql], row[:caller].to_s]
        end
      end

      private

      def statement(one)
        return unless one.is_a?(Hash) && one["sql"].is_a?(String)

        numbers = NUMBERS.to_h { |key| [key.to_sym, one[key].is_a?(Numeric) ? one[key] : 0] }
        return if numbers.each_value.any? { |number| number.abs > LARGEST }

        { sql: one["sql"], caller: (one["caller"] if one["caller"].is_a?(String)), **numbers,
          n_plus_one: one["n_plus_one"] == true }
      end

      def sum(all, key) = all.sum { |one| one[key] }
    end
  end

  # The lines listed by requests, by location and class, most objects first.
  module Allocations
    class << self
      def of(objects)
        list = objects["lines"] if objects.is_a?(Hash)
        return [] unless list.is_a?(Array)

        list.filter_map { |one| allocation(one) }
      end

      def sum_up(lists)
        groups = lists.flatten.group_by { |one| one.values_at(:location, :class) }
        rows = groups.map do |(location, name), all|
          { location: location, class: name, requests: all.size, objects: all.sum { |one| one[:objects] },
            bytes: all.sum { |one| one[:bytes] } }
        end
        rows.sort_by { |row| [-row[:objects], row[:location], row[:class]] }
      end

      private

      def allocation(one)
        return unless one.is_a?(Hash) && one["location"].is_a?(String)

        objects, bytes = one.values_at("count", "bytes").map { |number| number.is_a?(Numeric) ? number : 0 }
        { location: one["location"], class: one["class"].is_a?(String) ? one["class"] : "",
          objects: objects, bytes: bytes }
      end
    end
  end

  # A traced request, or a traced block, as it was read: its name, and its cost.
  #
  # Files of memprof 0.3.8 and later use whole milliseconds, all others seconds. `start` shows which: it is in
  # milliseconds or microseconds since the epoch, and values below YOUNGEST can't be microseconds, unless the
  # request is from 1973.
  class Entry
    YOUNGEST = 100_000_000_000_000
    # The tracers' keys for numbers of calls.
    CALLS = %w[calls queries].freeze
    BYTES = %w[object_bytes memory].freeze
    COUNTS = %w[objects gvl_waits].freeze
    # Limits of cost and time (the year 9999): a line that exceeds them is not a request.
    LARGEST = 10**18
    LATEST = 253_402_300_800_000_000
    # A part of a path that identifies one of many: a number, a UUID, 8 or more hexadecimal digits.
    ID = %r{
      (?<=/) (?:\d+ | \h{8}-\h{4}-\h{4}-\h{4}-\h{12} | (?=[a-f]*\d)\h{8,}) (?=(?:\.[a-z]+\d?)?(?:/|\z))
    }ix
    private_constant :YOUNGEST, :CALLS, :BYTES, :COUNTS, :LARGEST, :LATEST, :ID

    def self.of?(record)
      return false unless record.is_a?(Hash)
      return record["tracers"].is_a?(Hash) if record.key?("tracers")

      !record.empty? && record.each_value.all?(Hash)
    end

    def self.unit(kind)
      return :bytes if BYTES.include?(kind)

      COUNTS.include?(kind) || kind.end_with?("_calls") ? :count : :seconds
    end

    attr_reader :record
    attr_reader :line
    attr_reader :costs

    def initialize(record, line)
      @record = record
      @line = line
      @tracers = record["tracers"] || record
      @scale = milliseconds? ? 0.001 : 1
      @costs = { "time" => seconds(record["time"]) }
      @tracers.each { |name, numbers| add(name, numbers) if numbers.is_a?(Hash) }
    end

    def possible?
      @costs.each_value.all? { |cost| cost.abs <= LARGEST } && possible_start?
    end

    def cost(kind)
      @costs.fetch(kind, 0)
    end

    def start
      start = @record["start"]
      return unless start.is_a?(Numeric)

      Time.at(Rational(start.to_i, start < YOUNGEST ? 1000 : 1_000_000))
    end

    def action
      rails = hash("rails")
      return path.gsub(ID, ":id") unless rails["controller"]

      "#{rails["controller"]}##{rails["action"]}"
    end

    def path
      request = hash("request")
      path = request["PATH_INFO"] || request["REQUEST_PATH"] || request["REQUEST_URI"]
      return (@record["command"] || "block").to_s unless path

      [request["REQUEST_METHOD"], path.to_s[/\A[^?]*/]].compact.join(" ")
    end

    # SQL statements, if they were traced.
    def statements
      Statements.of(@tracers["sql"])
    end

    # Allocating lines, if they were tracked.
    def allocations
      Allocations.of(@tracers["objects"])
    end

    def status
      hash("response").fetch("code", "none").to_s
    end

    def exception
      code = hash("exception_code").values_at("error_number", "sqlstate").compact.first
      [@record["exception"] || "none", ("(#{code})" if code)].compact.join(" ")
    end

    private

    def possible_start?
      start = @record["start"]
      !start.is_a?(Numeric) || (start * (start < YOUNGEST ? 1000 : 1)).abs < LATEST
    end

    def hash(key)
      value = @record[key]
      value.is_a?(Hash) ? value : {}
    end

    def milliseconds?
      start = @record["start"]
      return start < YOUNGEST if start.is_a?(Numeric)

      time = @record["time"] || (@tracers["gc"].is_a?(Hash) ? @tracers["gc"]["time"] : nil)
      time.is_a?(Integer) && time.positive?
    end

    def seconds(value)
      value.is_a?(Numeric) ? value * @scale : 0
    end

    def add(name, numbers)
      case name
      when "objects" then @costs.update("objects" => number(numbers["created"]),
        "object_bytes" => number(numbers["bytes"]))
      when "memory" then memory(numbers)
      when "resources" then @costs["cpu"] = seconds(numbers["utime"]) + seconds(numbers["stime"])
      when "threads" then threads(numbers)
      else calls(name, numbers)
      end
    end

    def memory(numbers)
      calls = numbers.each_value.grep(Hash)
      @costs["memory"] = calls.sum { |call| number(call["requested"]) }
      @costs["memory_calls"] = calls.sum { |call| number(call["calls"]) }
    end

    def threads(numbers)
      @costs["gvl_wait"] = seconds(numbers["gvl_wait_time"])
      @costs["gvl_waits"] = number(numbers["gvl_waits"])
    end

    # A tracer counts calls in total, or per function.
    def calls(name, numbers)
      own = CALLS.any? { |key| numbers[key].is_a?(Numeric) }
      parts = own ? [numbers] : numbers.each_value.grep(Hash)
      @costs[name] = parts.sum { |part| seconds(part["time"]) }
      @costs["#{name}_calls"] = parts.sum { |part| CALLS.sum { |key| number(part[key]) } }
    end

    def number(value)
      value.is_a?(Numeric) ? value : 0
    end
  end
  attr_reader :entries
  attr_reader :broken
  attr_reader :first_broken

  def self.read(io)
    log = new
    io.each_line.with_index(1) { |line, number| log.add(line, number) }
    log
  end

  def initialize
    @entries = []
    @broken = 0
  end

  def add(line, number)
    text = line.dup.force_encoding(Encoding::UTF_8).scrub
    return if text.strip.empty?

    record = JSON.parse(text)
    raise JSON::ParserError, "no request" unless Entry.of?(record)

    entry = Entry.new(record, number)
    raise JSON::ParserError, "no request" unless entry.possible?

    @entries << entry
  rescue JSON::ParserError
    @broken += 1
    @first_broken ||= number
  end

  def kinds
    @kinds ||= @entries.flat_map { |entry| entry.costs.keys }.uniq
  end

  # The costs of the requests, by kind.
  def costs(entries = @entries)
    kinds.filter_map do |kind|
      values = entries.map { |entry| entry.cost(kind) }.sort
      total = values.sum
      next if total.zero?

      { kind: kind, unit: Entry.unit(kind), total: total, mean: total.fdiv(values.size),
        p50: percentile(values, 50), p90: percentile(values, 90), p95: percentile(values, 95),
        p99: percentile(values, 99), max: values.last }
    end
  end

  # SQL statements by text and caller: repeated ones first.
  def statements
    Statements.sum_up(@entries.map(&:statements))
  end

  # Allocating lines, by location and class.
  def allocations
    Allocations.sum_up(@entries.map(&:allocations))
  end

  # The requests in groups, most expensive by a kind first.
  def groups(by, sort)
    groups = @entries.group_by { |entry| entry.public_send(by) }.map do |name, entries|
      costs = costs(entries)
      { name: name, requests: entries.size, cost: entries.sum { |entry| entry.cost(sort) }, costs: costs }
    end
    groups.sort_by { |group| [-group[:cost], group[:name]] }
  end

  def worst(sort)
    @entries.sort_by { |entry| [-entry.cost(sort), entry.line] }
  end

  private

  # The nearest rank: an actual value.
  def percentile(sorted, percent)
    sorted[((percent * sorted.size).fdiv(100).ceil - 1).clamp(0, sorted.size - 1)]
  end
end
