# frozen_string_literal: true

require "json"

begin
  require "memory_profiler"
rescue LoadError
  nil # there is nothing to compare with
end

# One program under memory_profiler and under memprof: who changes the name finds the same report.
RSpec.describe Memprof::Report, "beside memory_profiler", if: defined?(MemoryProfiler) do
  # Prints, for both, counts by group as JSON, or the report itself.
  def program
    <<~RUBY
      require "memory_profiler"
      require "memprof"
      require "json"

      Point = Struct.new(:x, :y)

      def work
        $kept = Array.new(10) { |index| "kept \#{index}" }
        $kept << Point.new(1.5, "y".dup) << { key: [1, 2, 3, 4, 5] }
        25.times { Object.new }
        3.times { "the same".dup }
        5.times { |index| [Array.new(1_000), "x" * 100_000, 7**5_000, (0..99).to_h { |key| [key, index] }] }
        ("a".."e").map(&:upcase).to_h { |letter| [letter, letter * 100] }
        nil
      end

      # memory_profiler sees no objects of the VM itself.
      def groups(report, names)
        names.to_h { |name| [name, report.public_send(name).reject { |group| group[:data].start_with?("<") }] }
      end

      names = %i[allocated retained].product(%i[class location file]).map do |kind, by|
        :"\#{kind}_objects_by_\#{by}"
      end
      names << :allocated_memory_by_class << :allocated_memory_by_location << :retained_memory_by_class
      names << :strings_allocated << :strings_retained
    RUBY
  end

  def child(code)
    result = run_ruby("#{program}\n#{code}")
    expect(result.stderr).to eq ""
    result.stdout
  end

  it "counts the same objects and strings" do
    reports = child(<<~RUBY)
      work # what is made by the first call alone
      theirs = MemoryProfiler.report { work }
      classes = theirs.allocated_objects_by_class.map { |group| Object.const_get(group[:data]) }
      ours = Memprof.report(trace: classes) { work }
      puts JSON.generate([theirs, ours].map { |report| names.to_h { |name| [name, report.public_send(name)] } })
    RUBY
    theirs, ours = JSON.parse(reports)
    expect(ours.keys).to eq theirs.keys
    theirs.each { |name, groups| expect([name, ours[name]]).to eq [name, groups] }
    expect(theirs["allocated_objects_by_class"]).to include("data" => "Object", "count" => 25)
  end

  it "prints the same sections" do
    theirs, ours = child(<<~RUBY).split("=====\n").map { |text| text.scan(/^(.+)\n-{35}$/) }
      MemoryProfiler.report { work }.pretty_print
      puts "====="
      Memprof.report { work }.pretty_print
    RUBY
    expect(ours).to eq theirs
    expect(ours.size).to eq 18
  end

  it "knows the gem of a site as the profile does" do
    by_site, by_group = JSON.parse(child(<<~RUBY))
      report = Memprof.report(top: 1000) do
        JSON.parse('{"a": [1, 2.5, "text"]}')
        Gem::Version.new("1.2").segments
        work
      end
      by_site = report.group_by(&:gem).transform_values { |sites| sites.sum(&:allocated_objects) }
      puts JSON.generate([by_site, report.allocated_objects_by_gem.to_h(&:values)])
    RUBY
    expect(by_site).to eq by_group
    expect(by_site.keys).to include(a_string_starting_with("json"), "rubygems")
  end
end
