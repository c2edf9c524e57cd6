# frozen_string_literal: true

# Replaces Native::Profile where a report needs exactly known content: hostile names, golden outputs.
class FakeProfile
  META = {
    "runtime" => "ruby 3.4.1 (2024-12-25 revision 48d4efcb85) +PRISM [x86_64-linux]", "memprof" => "0.1.0",
    "pid" => 4711, "command" => "app.rb", "started_at" => 1_700_000_000.5, "duration" => 2.312, "sample" => 1,
    "stack" => 1, "gc_count" => 14
  }.freeze
  ZERO = { "objects" => 0, "bytes" => 0 }.freeze

  attr_reader :meta, :filters

  # One row of Native::Profile#sites: `freed` objects, with `ages` when they were freed, and live `retained`
  # objects.
  def self.row(file, line, class_name, method: "<main>", retained: [0, 0], freed: [0, 0], ages: [0.0, 0],
    stack: nil)
    {
      "file" => file, "line" => line, "method" => method, "class" => class_name,
      "allocated" => amount(retained[0] + freed[0], retained[1] + freed[1]),
      "retained" => amount(*retained), "freed" => amount(*freed),
      "ages" => { "mean" => ages[0], "max" => ages[1] },
      "stack" => stack || ["#{file}:#{line}:in #{method}"]
    }
  end

  def self.amount(objects, bytes)
    { "objects" => objects, "bytes" => bytes }
  end

  # A small web application with an unbounded cache.
  def self.leaky
    new(
      [
        row("/srv/shop/app/cache.rb", 12, "String", method: "Cache#fetch", retained: [10_000, 1_280_000],
          freed: [2, 80], ages: [0.5, 1]),
        row("/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.0/lib/rack/utils.rb", 42, "Hash",
          method: "Rack::Utils.parse_query", retained: [12, 2016], freed: [499_988, 83_997_984],
          ages: [0.31, 7]),
        row("/usr/lib/ruby/3.4.0/set.rb", 501, "Set", method: "Set#initialize", freed: [900, 36_000],
          ages: [1.25, 3]),
        row("/srv/shop/app/cache.rb", 12, "Array", method: "Cache#fetch", retained: [3, 120])
      ],
      allocated_strings: [
        ["GET", 3, [["/srv/shop/app/cache.rb:12", 2], ["script.rb:1", 1]]],
        ["two\nlines", 1, [["script.rb:2", 1]]]
      ],
      retained_strings: [["GET", 2, [["/srv/shop/app/cache.rb:12", 2]]]]
    )
  end

  def initialize(rows = [], allocated_strings: [], retained_strings: [], meta: {})
    @rows = rows
    @strings = { "allocated" => allocated_strings, "retained" => retained_strings }
    @meta = META.merge(meta)
    @filters = []
  end

  def sources
    { "/srv/shop/app/cache.rb" => { "12" => "@entries[key] ||= yield" } }
  end

  def totals
    %w[allocated retained freed].to_h { |kind| [kind, sum(@rows, kind)] }
  end

  def group(kind, by, sort, limit)
    groups = @rows.group_by { |row| label(row, by) }.map { |label, rows| [label, *sum(rows, kind).values] }
    measure = sort == "memory" ? 2 : 1
    groups.select { |group| group[1].positive? }.sort_by { |group| [-group[measure], group[0]] }
      .first(limit || groups.size)
  end

  def sites(sort, limit)
    key = sort == "memory" ? "bytes" : "objects"
    @rows.sort_by { |row| [-row["allocated"][key], row["file"], row["line"]] }.first(limit || @rows.size)
  end

  def each_site(&block)
    sites("memory", nil).each(&block)
  end

  def places(kind, sort, limit)
    key = sort == "memory" ? "bytes" : "objects"
    rows = @rows.group_by { |row| row.values_at("file", "line", "class", "method") }.map do |_, same|
      main = same.max_by { |row| row["retained"]["bytes"] }
      main.merge(%w[allocated retained freed].to_h { |name| [name, sum(same, name)] })
    end
    rows = rows.select { |row| row[kind]["objects"].positive? }
    rows = rows.sort_by { |row| [-row[kind][key], *row.values_at("file", "line", "class", "method")] }
    [rows.size, rows.first(limit)]
  end

  def sites_json
    sites("memory", nil).each_with_index do |row, index|
      yield "#{"," if index.positive?}#{Memprof::Report::Site.new(row).to_h.to_json}"
    end
  end

  def strings(kind, limit)
    @strings.fetch(kind).first(limit || @strings.fetch(kind).size)
  end

  def files
    @rows.map { |row| row["file"] }.uniq
  end

  def classes
    @rows.map { |row| row["class"] }.uniq
  end

  def filter(files, classes)
    @filters << [files, classes]
    rows = @rows.select do |row|
      (files.nil? || files.include?(row["file"])) && (classes.nil? || classes.include?(row["class"]))
    end
    FakeProfile.new(rows, meta: @meta)
  end

  def export(format, value)
    "#{format} of #{value}\n"
  end

  private

  def sum(rows, kind)
    rows.map { |row| row[kind] }.reduce(ZERO) { |a, b| a.merge(b) { |_, left, right| left + right } }
  end

  def label(row, by)
    case by
    when "gem" then Memprof::Paths.gem_of(Memprof::Printable.utf8(row["file"]))
    when "location" then "#{row["file"]}:#{row["line"]}"
    else row[by]
    end
  end
end
