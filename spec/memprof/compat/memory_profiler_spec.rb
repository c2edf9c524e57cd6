# frozen_string_literal: true

require "json"

# In processes of their own: other specs compare with the gem memory_profiler, whose name this takes.
RSpec.describe "memprof/memory_profiler" do
  def preamble
    <<~RUBY
      # frozen_string_literal: true

      require "memprof/memory_profiler"
      require "json"
      require "stringio"
    RUBY
  end

  def child(code, **options)
    result = run_ruby("#{preamble}#{code}", **options)
    expect([result.stderr, result.success?]).to eq ["", true]
    JSON.parse(result.stdout)
  end

  it "takes the options of memory_profiler, by Symbol, String or nil" do
    results = child(<<~RUBY)
      options = [
        {}, { trace: String }, { "trace" => [String, Hash] }, { allow_files: "-e" }, { allow_files: ["-e", "x"] },
        { ignore_files: /-e/ }, { "ignore_files" => "-e|x" }, { ignore_files: nil, allow_files: nil, "top" => 1 },
        { unknown: 1, allow_files: /^-e$/ }
      ]
      puts JSON.generate(options.map { |some|
        MemoryProfiler.report(some) { 3.times { "a".dup }; $kept = {}; Object.new }.then { |report|
          kept = report.retained_objects_by_class.any? { |group| group[:data] == "Hash" }
          [report.total_allocated, kept, report.allocated_objects_by_class.size]
        }
      })
    RUBY
    expect(results).to eq [
      [5, true, 3], [3, false, 1], [4, true, 2], [5, true, 3], [5, true, 3], [0, false, 0], [0, false, 0],
      [5, true, 1], [5, true, 3]
    ]
  end

  it "prints in memory_profiler's shape, and without objects of the VM" do
    text = child(<<~RUBY)["text"]
      report = MemoryProfiler.report(top: 5) { $kept = "k" * 100; eval("def fresh = 1") }
      report.pretty_print(io = StringIO.new, scale_bytes: true, color_output: false, retained_strings: 1)
      report.pretty_print(to_file: File::NULL, "unknown": 1)
      puts JSON.generate(text: io.string)
    RUBY
    expect(text).to match(/\ATotal allocated: .*\nTotal retained:  .*\n\nallocated memory by gem\n-+\n/)
    expect(text).to include("Retained String Report").and include("String").and match(/\d B  -e:\d+$/)
    expect(text).not_to include("<iseq>")
  end

  it "has the version of the gem, for scripts that print or compare it" do
    version = child("puts JSON.generate([MemoryProfiler::VERSION])").first
    expect(Gem::Version.new(version)).to be >= Gem::Version.new("1.0.2")
  end

  it "has what extensions of memory_profiler call" do
    found = child(<<~'RUBY')
      helpers = MemoryProfiler::Helpers.new
      stat = Struct.new(:file, :memsize)
      stats = { 1 => stat.new("b", 10), 2 => stat.new("a", 5), 3 => stat.new("a", 5), 4 => stat.new("c", 1) }
      liar = Class.new { def class = :liar }
      puts JSON.generate([
        stats.extend(MemoryProfiler::TopN).top_n(2, :file),
        helpers.guess_gem("/x/gems/rack-3.0.1/lib/rack.rb"), helpers.lookup_location("a.rb", 3),
        helpers.lookup_location("a.rb", 3).equal?(helpers.lookup_location("a.rb", 3)),
        helpers.object_class(liar.new) == liar, helpers.lookup_class_name(String),
        helpers.lookup_class_name(liar), helpers.lookup_string("a" * 300).size
      ])
    RUBY
    groups = [[{ "data" => "a", "count" => 10 }, { "data" => "b", "count" => 10 }],
      [{ "data" => "a", "count" => 2 }, { "data" => "b", "count" => 1 }]]
    expect(found).to eq [groups, "rack-3.0.1", "a.rb:3", true, true, "String", "<<Unknown>>", 200]
  end

  it "has the command as a class, for scripts and commands" do
    Dir.mktmpdir do |directory|
      script = File.join(directory, "script.rb")
      File.write(script, "3.times { 'a'.dup }\n$kept = {}\n")
      command = ->(*arguments) do
        run_ruby("require %q(memprof/memory_profiler); exit MemoryProfiler::CLI.new.run(ARGV)",
          args: ["--", *arguments])
      end

      result = command.call("--max=5", "--classes=String", "--no-detailed", script)
      expect([result.stdout[/\ATotal allocated: .*/], result.status.exitstatus]).to eq(
        ["Total allocated: 240 bytes (6 objects)", 0]
      )
      result = command.call("--no-detailed", "--classes=Hash", "run", "--", RbConfig.ruby, script)
      expect(result.stdout).to match(/\ATotal allocated: .*\nTotal retained: +\d+ bytes \(1 objects\)\n/)
      expect(command.call("--pretty", script).stdout).to match(/\ATotal allocated: [\d.]+ k?B/)
      expect(command.call.stdout).to include("ERROR: Must specify a script to run")
      result = command.call("--wrong")
      expect([result.stdout[/invalid option: --wrong/], result.status.exitstatus]).to eq(
        ["invalid option: --wrong", 1]
      )
      expect(command.call("--version").stdout).to start_with("ruby-memory-profiler  1.")
    end
  end

  it "starts and stops, once" do
    results = child(<<~RUBY)
      before = MemoryProfiler.stop
      MemoryProfiler.start(trace: String)
      reporter = MemoryProfiler::Reporter.current_reporter
      MemoryProfiler.start
      same = reporter.equal?(MemoryProfiler::Reporter.current_reporter)
      2.times { "a".dup }
      results = MemoryProfiler.stop
      puts JSON.generate([before, same, results.total_allocated, MemoryProfiler.stop,
        results.equal?(reporter.report_results), MemoryProfiler::Results.new.total_allocated])
    RUBY
    expect(results).to eq [nil, true, 2, nil, true, 0]
  end

  it "stops when the block raises, and says what is wrong with an option before the block runs" do
    results = child(<<~RUBY)
      raised = begin
        MemoryProfiler.report { raise Exception, "of the block" }
      rescue Exception => e
        e.message
      end
      wrong = begin
        MemoryProfiler.report(top: 0) { puts "ran" }
      rescue ArgumentError => e
        e.message
      end
      puts JSON.generate([raised, wrong, MemoryProfiler.report { "a".dup }.total_allocated])
    RUBY
    expect(results).to eq ["of the block", "top must be a positive Integer, not 0", 1]
  end

  it "is what a later require of memory_profiler finds, also by its path" do
    Dir.mktmpdir do |directory|
      File.write(File.join(directory, "memory_profiler.rb"), "abort 'the gem is loaded'")
      results = child(<<~RUBY, ruby_args: ["-I#{directory}"])
        puts JSON.generate([require("memory_profiler"), require("#{directory}/memory_profiler"),
          MemoryProfiler == Memprof::MemoryProfiler])
      RUBY
      expect(results).to eq [false, false, true]
    end
  end

  it "leaves a MemoryProfiler alone that is there, and says so" do
    stdout, stderr = run_ruby("module MemoryProfiler; end\n#{preamble}p MemoryProfiler.methods(false)")
    expect(stdout).to eq("[]\n")
    expect(stderr).to start_with("memprof: memprof/memory_profiler is not used, because MemoryProfiler is")
  end
end
