# frozen_string_literal: true

require "json"
require "tmpdir"

RSpec.describe "A recording of malloc for Memprof::Core" do
  before do
    skip "processes are copied on Linux" unless RUBY_PLATFORM.include?("linux")
    skip "this Ruby has no fiddle" unless run_ruby('require "fiddle"').success?
  end

  around { |example| Dir.mktmpdir { |directory| (@directory = directory) && example.run } }

  let(:path) { File.join(@directory, "app.malloc") }

  # Leaks blocks in C from lines 1 to 3. LINES has the line of each, by its address; masked, so that it does
  # not look like one.
  planted = <<~'RUBY'
    def first = note(Fiddle.malloc(3000), __LINE__)
    def second = note(Fiddle.malloc(3000), __LINE__)
    def moved = note(Fiddle.realloc(Fiddle.malloc(300), 3000), __LINE__)
    require "memprof"
    require "memprof/malloc"
    require "fiddle"
    require "json"
    LINES = {}
    def note(address, line) = LINES["0x#{(address ^ 0x5555_5555_5555).to_s(16)}"] = "-e:#{line}"
    def freed = Fiddle.free(Fiddle.malloc(3000))
    def leak = 100.times { [first, freed, second, moved].clear }
    def lines = LINES.transform_keys { |address| "0x#{(Integer(address, 16) ^ 0x5555_5555_5555).to_s(16)}" }
    # Until the file has blocks of these lines.
    def wait(path, count)
      Memprof::Malloc.quiet do
        rows = -> { Memprof::Malloc::Recording.new(path).to_h[:locations] }
        live = -> { rows.call.sum { |row| row[:location].match?(/\A-e:[123]\z/) ? row[:leaked] : 0 } }
        sleep(0.02) until live.call >= count
      end
    end
    $stdout.sync = true
    GC.disable
  RUBY

  def in_child(code, **env)
    result = run_ruby(code, env: env.transform_keys(&:to_s).merge("RECORDING" => path))
    expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
    JSON.parse(result.stdout)
  end

  it "knows the line that allocated each leaked block of this process" do
    found = in_child(<<~RUBY)
      #{planted}
      path = ENV.fetch("RECORDING")
      Memprof::Malloc.record(path, addresses: true)
      leak
      wait(path, 300)
      Memprof::Core.of(recording: path) do |core|
        leaked = core.each(:leaked, min_size: 3000, max_size: 3050).to_a
        used = core.each(:used, min_size: 3000, max_size: 3050).select { |block| lines[block[:address]] }
        one = leaked.first[:address]
        facts = %i[allocated_at method]
        puts JSON.generate(leaked: leaked.size, used: used.map { |block| [block[:address], *block.values_at(*facts)] },
          lines: lines, places: core.summarize(:leaked, min_size: 3000, max_size: 3050)[:places],
          same: [leaked.first, core.describe(one), core.explain(one)].map { |block| block.slice(*facts) }.uniq.size,
          recording: core.overview[:recording])
      end
    RUBY
    methods = { "-e:1" => "first", "-e:2" => "second", "-e:3" => "moved" }
    expected = found["lines"].map { |address, line| [address, line, methods[line]] }
    expect(found["used"]).to match_array(expected)
    expect(found["lines"].size).to eq(300)
    # What was in the blocks before, and words that a call has left on the stack, may look like references.
    expect(found["leaked"]).to be_between(240, 320)
    expect(found["places"].first(3).map { |row| row["allocated_at"] }).to match_array(methods.keys)
    expect(found["places"].first(3).map { |row| row["count"] }).to all(be_between(70, 100))
    expect(found["same"]).to eq(1)
    expect(found["recording"]).to include("ended" => false, "sample" => nil, "damaged_at" => nil,
      "known" => include("count" => be >= 300), "unknown" => include("count" => be > 1000))
  end

  it "knows samples, and that the others are not in the recording" do
    found = in_child(<<~RUBY)
      #{planted}
      path = ENV.fetch("RECORDING")
      Memprof::Malloc.record(path, addresses: true, sample: 8000)
      leak
      wait(path, 1)
      Memprof::Malloc.stop
      Memprof::Core.of(recording: path) do |core|
        used = core.each(:used, min_size: 3000, max_size: 3050).select { |block| lines[block[:address]] }
        known = used.select { |block| block[:allocated_at] }
        puts JSON.generate(known: known.size, wrong: known.reject { |block| block[:allocated_at] == lines[block[:address]] },
          recording: core.overview[:recording])
      end
    RUBY
    expect(found["known"]).to be_between(10, 250)
    expect(found["wrong"]).to eq([])
    expect(found["recording"]).to include("ended" => true, "sample" => 8000)
  end

  it "is refused if it is of another process, or has no addresses" do
    messages = in_child(<<~RUBY)
      #{planted}
      path = ENV.fetch("RECORDING")
      message = lambda do |file|
        Memprof::Core.of(recording: file) { "none" }
      rescue Memprof::Error => e
        e.message.gsub(File.dirname(path), "DIR").gsub(/\\d{2,}/, "PID")
      end
      Memprof::Malloc.record(path) { leak }
      messages = [message.call(path)]
      child = fork do
        Memprof::Malloc.record("\#{path}.child", addresses: true) { leak }
        exit!
      end
      Process.wait(child)
      messages << message.call("\#{path}.child")
      File.write("\#{path}.none", "none")
      messages << message.call("\#{path}.none") << message.call("\#{path}.missing")
      puts JSON.generate(messages)
    RUBY
    expect(messages).to eq([
      "DIR/app.malloc has no addresses of blocks; record with `memprof run --malloc --addresses`, or " \
      "`Memprof::Malloc.record(path, addresses: true)`",
      "DIR/app.malloc.child is a recording of another process, PID",
      "DIR/app.malloc.none is not a recording of malloc",
      "cannot read DIR/app.malloc.missing: No such file or directory"
    ])
  end

  describe "another process, or its core file" do
    before { CoreFiles.obstacle&.then { |reason| skip(reason) } }

    let(:recorded) do
      <<~RUBY
        #{planted}
        Memprof::Malloc.record(#{path.inspect}, addresses: true)
        leak
        wait(#{path.inspect}, 300)
        puts "ready"
        $stdin.read
        # What happens later is not of the core file.
        LINES.each_key { |address| Fiddle.free(Integer(address, 16) ^ 0x5555_5555_5555) }
        def later = Fiddle.malloc(3000)
        400.times { later }
        File.write(#{"#{path}.lines".inspect}, JSON.generate(lines))
      RUBY
    end

    let(:command) { [RbConfig.ruby, "-I#{ChildRuby::LIB}", "-e", recorded] }

    # The file, and the line of each block.
    def core_file
      file = CoreFiles.write(@directory, *command)
      skip "gcore may not trace" unless file
      [file, JSON.parse(File.read("#{path}.lines"))]
    end

    it "is asked while the process runs" do
      IO.popen({ "RUBYOPT" => nil }, command, "r+") do |io|
        io.gets
        result = run_memprof("core", io.pid, "summarize", "leaked", "--recording", path)
        expect([result.stderr, result.status.exitstatus]).to eq(["", 0])
        counts = result.stdout.scan(/^Allocated at (-e:\d+) \(\w+\): (\d+) instances/).to_h
        expect(counts.values_at("-e:1", "-e:2", "-e:3").map(&:to_i)).to all(be_between(70, 100))
        expect(run_memprof("core", Process.pid, "--recording", path).stderr)
          .to eq("memprof: #{path} is a recording of another process, #{io.pid}\n")
      end
    end

    it "has the lines that had allocated its blocks when it was taken" do
      file, lines = core_file
      core = Memprof::Core.open(file, recording: path)
      used = core.each(:used, min_size: 3000, max_size: 3050).select { |block| lines.key?(block[:address]) }
      expect(used.to_h { |block| block.values_at(:address, :allocated_at) }).to eq(lines)
      expect(core.overview[:recording]).to include(ended: false)
      expect { Memprof::Core.open(file, recording: "/dev/null") }
        .to raise_error(Memprof::Error, "/dev/null is not a recording of malloc")
    end

    def ask(*words)
      result = run_memprof("core", @file, *words, "--recording", path)
      expect(result.status.exitstatus).to eq(0), result.stderr
      result.stdout
    end

    it "is shown by the command with the lines" do
      @file, lines = core_file
      shown = ask
      expect(shown).to match(/^Recording +[\d,]+ used blocks known, [\d,]+ not in it$/)
      expect(shown).to match(/^Leaked blocks by the line that allocated them\n +Size +Blocks +Allocated at\n/)
      { "-e:1" => "first", "-e:2" => "second", "-e:3" => "moved" }.each do |line, method|
        expect(shown).to match(/^ *2\d\d\.\d KiB +\d+  #{line} \(#{method}\)$/)
        expect(ask("summarize", "leaked"))
          .to match(/^Allocated at #{line} \(#{method}\): \d+ instances taking 0x\h+\([\d,]+\) bytes\.$/)
      end
      address, line = lines.first
      described = /^It was allocated at #{line} \(first\)\.$/
      explained = ask("explain", address)
      calls = /^These calls led there, innermost first:\n {3}first \(-e:1\)\n {3}block in leak \(/
      expect(explained).to match(calls)
      %w[describe explain].each { |verb| expect(ask(verb, address)).to match(described) }
      expect(ask("list", "allocation", address)).to match(described)
      expect(JSON.parse(ask("--json", "describe", address)))
        .to include("allocated_at" => line, "method" => "first")
      expect(JSON.parse(ask("--json"))).to include("recording" => include("ended" => false),
        "leaks" => include("places" => include(include("allocated_at" => "-e:2"))))
    end
  end
end
