# frozen_string_literal: true

require "json"
require "objspace"
require "tmpdir"

RSpec.describe "the peak of memory" do
  # What a child says of the peak of a program: the code has `report`, and the paths and lines of `-e`.
  def peak_of(code)
    result = run_ruby(<<~RUBY)
      require "memprof"
      require "json"
      require "objspace"
      def at(report, line) = report.select { |site| site.file == "-e" && site.line == line }.sum(&:peak_bytes)
      #{code}
    RUBY
    expect(result.stderr).to eq("")
    JSON.parse(result.stdout)
  end

  it "belongs to the sites whose objects there were then, with their sizes" do
    large, small, planted, retained = peak_of(<<~RUBY)
      planted = nil
      report = Memprof.report(peak: true) do
        large = Array.new(4_000) { |number|
          "x" * (2_000 + number) }
        GC.start
        planted = large.sum { |text| ObjectSpace.memsize_of(text) }
        large = nil
        GC.start
        $small = Array.new(1_000) {
          "y" * 3_000 }
      end
      at = ->(line) { report.select { |site| site.line == line && site.class_name == "String" }.sum(&:peak_bytes) }
      puts JSON.generate([at[8], at[14], planted, report.total_retained_memsize])
    RUBY

    # The literals are part of it as well, and a new peak is 10 % above the last, other objects included.
    expect(large).to be_between(planted * 0.85, planted * 1.05)
    expect(small).to be < planted / 100
    expect(retained).to be < planted / 2
  end

  it "agrees with ObjectSpace about all objects, where the last collection has the most" do
    peak, sampled = peak_of(<<~RUBY)
      GC.start # what loading has left is no part of either
      before = ObjectSpace.memsize_of_all
      sampled = nil
      report = Memprof.report(peak: true) do
        $kept = Array.new(3_000) { |number| { number => ["z" * 1_000] } }
        GC.start
        sampled = ObjectSpace.memsize_of_all
      end
      puts JSON.generate([report.peak[:bytes], sampled - before])
    RUBY

    expect(peak).to be_between(sampled * 0.85, sampled * 1.05)
  end

  it "is found with threads, compaction and exceptions" do
    facts, peak, large = peak_of(<<~RUBY)
      report = Memprof.report(peak: true) do
        threads = Array.new(4) { Thread.new { 200.times.map { |number| "t" * 5_000 } } }
        threads.each(&:join)
        GC.compact if GC.respond_to?(:compact)
        200.times { raise "nothing" rescue nil }
        threads = nil
        GC.start
      end
      puts JSON.generate([report.peak, report.sum(&:peak_bytes), at(report, 6)])
    RUBY

    expect(facts).to include("bytes" => peak, "objects" => be > 800)
    expect(facts["time"]).to be_between(0, 60)
    expect(large).to be > 800 * 5_000
  end

  it "is not there unless asked for" do
    report = Memprof.report { Object.new }
    expect(report.peak).to be_nil
    expect(report.map(&:peak_bytes).uniq).to eq([0])
    expect(report.to_json).not_to include('"peak"')
    expect(report.to_s).not_to include("Peak")
  end

  it "is in JSON, text and Markdown, and of each process in memprof run" do
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "app.rb"), <<~RUBY)
        lines = Array.new(500) { "x" * 10_000 }
        lines = nil
        GC.start
        Process.wait(fork { Array.new(400) { "y" * 10_000 } })
      RUBY
      text = run_memprof("run", "--peak", "-o", "report.json", "app.rb", chdir: directory)
      expect(text).to be_success
      reports = Dir[File.join(directory, "report*.json")].map { |path| JSON.parse(File.read(path)) }
      lines = reports.map do |report|
        expect(report["meta"]["peak"]).to include("bytes", "malloc", "resident", "slots")
        report["sites"].max_by { |site| site.dig("peak", "bytes").to_i }.values_at("line", "class")
      end
      expect(lines).to contain_exactly([1, "String"], [4, "String"])

      text = run_memprof("run", "--peak", "app.rb", chdir: directory).stdout
      expect(text).to match(/^Peak after .*: [\d,]+ objects \(\d+\.\d MiB\); /)
      expect(text).to match(/^ *At peak/).and match(/MiB +[\d,]+ .* String +app\.rb:1 in <main>/)
    end
  end
end
