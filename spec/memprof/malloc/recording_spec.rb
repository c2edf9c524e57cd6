# frozen_string_literal: true

require "json"
require "memprof/cli"
require "open3"
require "stringio"
require "tmpdir"

RSpec.describe "Memprof::Malloc::Recording" do
  before { skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux") }

  around { |example| Dir.mktmpdir { |directory| (@directory = directory) && example.run } }

  let(:path) { File.join(@directory, "app.malloc") }

  # Recording is global: each example has a process of its own. The first call of a method makes the VM
  # allocate tables for its cache, which would be counted at that line.
  def in_child(code)
    run_ruby(%(require "memprof/malloc"; PATH = #{path.inspect}; ("a" * 2).clear\n#{code}))
  end

  def recording = Memprof::Malloc::Recording.new(path).to_h

  def row(summary, location) = summary[:locations].find { |row| row[:location] == location }

  # A line may have a table for the cache of a method besides its own blocks.
  def about(bytes) = be_between(bytes, bytes + 10_000)

  it "prints its tables as Markdown, by `memprof malloc --markdown`, too" do
    expect(in_child('Memprof::Malloc.record(PATH) { @x = "x" * 100_000 }').stderr).to eq("")
    text = Memprof::Malloc::Recording.new(path).to_markdown(limit: 1)
    expect(text).to match(/\A`malloc of -e, process \d+, .*`\n\n/)
    expect(text).to match(/^\| Live at the peak \| Share .*\n\| ---: .*\n\| 9\d\.\d KiB .* `-e:\d` \|$/)
    out = StringIO.new
    terminal = Memprof::CLI::Terminal.new(out: out)
    Memprof::CLI.command("malloc", terminal).start(["--markdown", "--limit", "1", path])
    expect(out.string).to eq(text)
    expect { Memprof::CLI.command("malloc", terminal).start(["--markdown", "--tree", path]) }
      .to raise_error(Memprof::CLI::UsageError, /--tree cannot be shown as markdown/)
  end

  it "has the peak, what is live, calls and temporary blocks by line, as Memprof::Malloc counts them" do
    result = in_child(<<~'RUBY')
      p(Memprof::Malloc.record(PATH) do
        kept = "a" * 300_000
        peak = "b" * 5_000_000
        peak.clear
        20.times { ("c" * 70_000).clear }
        kept.size
      end)
      names = Memprof::Malloc.locations.to_h { |one| [one.name, [one.allocations, one.total, one.live, one.live_bytes]] }
      require "json"
      puts JSON.generate(names)
    RUBY
    expect(result.stderr).to eq ""
    value, counts = result.stdout.lines(chomp: true)
    expect(value).to eq "300000"
    summary = recording
    expect(summary.slice(:complete, :damaged_at, :missed, :command)).to eq(
      complete: true, damaged_at: nil, missed: 0, command: "-e"
    )
    expect(row(summary, "-e:3")).to include(leaked_bytes: about(300_001), peak_bytes: about(300_001))
    expect(row(summary, "-e:4")).to include(leaked_bytes: (be < 10_000), peak_bytes: about(5_000_001))
    temporary = row(summary, "-e:6")
    expect(temporary).to include(peak_bytes: (be < 10_000), leaked_bytes: (be < 10_000))
    expect([temporary[:allocations], temporary[:temporary]]).to all(be >= 20)
    expect(summary[:total][:peak_bytes]).to eq(summary[:locations].sum { |one| one[:peak_bytes] })
    expect(summary[:timeline].last).to include(allocations: summary[:total][:allocations])
    expect(summary[:peak_rss]).to be > 5_000_000
    expect(summary[:sizes].find { |one| one[:up_to] == 131_072 }[:allocations]).to be >= 20
    counted = summary[:locations].to_h do |one|
      [one[:location], one.values_at(:allocations, :allocated_bytes, :leaked, :leaked_bytes)]
    end
    expect(counted).to eq(JSON.parse(counts))
  end

  # What heaptrack_print says behind a label.
  def of_heaptrack(text, label) = text[/^#{label}: (.*)$/, 1]

  it "has addresses on demand, and counts the same with them" do
    counted = ["", ", addresses: true"].map do |addresses|
      result = in_child(<<~RUBY)
        Memprof::Malloc.record(PATH#{addresses}) do
          kept = Array.new(50) { |index| "a" * (10_000 + index) }
          kept.first(20).each(&:clear)
          $kept = kept
        end
      RUBY
      expect(result.stderr).to eq ""
      summary = recording
      [summary[:addresses], row(summary, "-e:3").slice(:peak_bytes, :leaked_bytes, :leaked), File.size(path)]
    end
    (without, counts, size), (with, same, more) = counted
    expect([without, with, same]).to eq([false, true, counts])
    expect(more).to be > size
  end

  it "has addresses if memprof run is called so, also of a program other than Ruby" do
    others = (RbConfig::CONFIG["ENABLE_SHARED"] == "yes") ? [["sh", "-c", ":"]] : []
    [[RbConfig.ruby, "-e", "1"], *others].each do |command|
      ran = run_memprof("run", "--malloc", "--addresses", "-o", path, "--", *command)
      expect([ran.stdout, ran.status.exitstatus]).to eq ["", 0]
      expect(recording).to include(addresses: true)
    end
    ran = run_ruby("1", env: { "MEMPROF_MALLOC" => "addresses:true" }, ruby_args: %w[-rmemprof/malloc])
    expect(ran.stderr).to eq "memprof: malloc is not recorded: addresses cannot be set without record\n"
  end

  it "is what heaptrack and Massif can read" do
    in_child(<<~'RUBY')
      Memprof::Malloc.record(PATH) do
        $kept = "a" * 3_000_000
        ("b" * 5_000_000).clear
      end
    RUBY
    recording = Memprof::Malloc::Recording.new(path)
    %i[heaptrack massif collapsed].each { |format| recording.write("#{path}.#{format}", format: format) }
    expect(File.readlines("#{path}.collapsed")).to include(/;block in <main> \(-e:4\) 50\d{5}\n\z/)
    copy = StringIO.new
    recording.write(copy, format: :collapsed, value: :leaked)
    expect(copy.string.lines).to include(/;block in <main> \(-e:3\) 30\d{5}\n\z/)
    total = recording.to_h[:total]
    massif = File.read("#{path}.massif")
    expect(massif.scan(/^mem_heap_B=(\d+)$/).flatten.map(&:to_i).max).to eq(total[:peak_bytes])
    expect(massif).to match(/^heap_tree=peak\nn\d+: #{total[:peak_bytes]} .*
 n1: 50\d{5} 0x0: block in <main> \(-e:4\) \(-e:4\)
  n0: 50\d{5} 0x0: <main> \(-e:2\)/)
    skip "heaptrack is not installed" unless system("which heaptrack_print", out: File::NULL)

    text, = Open3.capture2("heaptrack_print", "--print-leaks=1", "#{path}.heaptrack")
    megabytes = ->(bytes) { format("%.2fM", bytes / 1e6) }
    expect(of_heaptrack(text, "peak heap memory consumption")).to eq(megabytes.(total[:peak_bytes]))
    expect(of_heaptrack(text, "total memory leaked")).to eq(megabytes.(total[:leaked_bytes]))
    expect(of_heaptrack(text, "calls to allocation functions")).to start_with("#{total[:allocations]} ")
    expect(of_heaptrack(text, "temporary memory allocations")).to start_with("#{total[:temporary]} ")
    expect(text).to match(/block in <>\n +at -e:3$/)
  end

  it "prints tables" do
    in_child('Memprof::Malloc.record(PATH) { $kept = "a" * 300_000 }')
    text = Memprof::Malloc::Recording.new(path).to_s
    expect(text).to match(/\Amalloc of -e, process \d+, .+s\n.+ calls allocated .+\nPeak: \d+\.\d KiB /)
    expect(text)
      .to match(/^ *Live at the end +Share +Calls +Allocated +Allocated at\n +\d+\.\d KiB +\d+ % .*-e:2$/)
    expect(text).to match(/^ *Size up to .*\n(.*\n)* +512\.0 KiB +1 /)
    expect(text).to match(/^ RSS .+ up to .+ MiB$/)
  end

  it "is right about blocks that threads allocate and free for each other" do
    result = in_child(<<~'RUBY')
      queue = Queue.new
      Memprof::Malloc.record(PATH) do
        threads = 4.times.map { Thread.new { 3_000.times { queue << ("x" * 900) } } }
        freeing = Thread.new { 12_000.times { queue.pop.clear } }
        [*threads, freeing].each(&:join)
      end
      strings = Memprof::Malloc["-e:4"]
      p [strings.allocations, strings.total, strings.live_bytes]
    RUBY
    expect(result.stderr).to eq ""
    summary = recording
    expect(summary.slice(:complete, :damaged_at)).to eq(complete: true, damaged_at: nil)
    expect(row(summary, "-e:4").values_at(:allocations, :allocated_bytes, :leaked_bytes).inspect)
      .to eq(result.stdout.chomp)
  end

  it "can be read while it grows, and after kill -9" do
    code = 'Memprof::Malloc.record(PATH); $kept = "a" * 400_000; loop { ("b" * 50_000).clear; $stdout.sync }'
    command = [RbConfig.ruby, "-I#{File.expand_path("lib")}", "-rmemprof/malloc", "-e",
      "PATH = #{path.inspect}\n#{code}"]
    pid = Process.spawn(*command)
    begin
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
      until File.exist?(path) && File.size(path) > 200 && recording[:total][:allocations] > 100
        raise "nothing was recorded" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

        sleep 0.05
      end
      expect(recording[:complete]).to be false
    ensure
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
    expect(recording.slice(:complete, :damaged_at)).to eq(complete: false, damaged_at: nil)
    expect(recording[:total]).to include(leaked_bytes: (be >= 400_001))
    expect(Memprof::Malloc::Recording.new(path).to_s)
      .to include("\nThe recording still runs, or its process was killed.\n")
    File.truncate(path, File.size(path) - 3)
    expect(recording[:damaged_at]).to be_nil
  end

  it "ends when the file can't be written, and the program continues" do
    result = in_child(<<~'RUBY')
      Process.setrlimit(:FSIZE, 2_000)
      random = Random.new(1)
      Memprof::Malloc.record(PATH) { 50_000.times { "x" * (100 + random.rand(5_000)) } }
      puts "went on"
    RUBY
    expect(result.stdout).to eq "went on\n"
    expect(result.stderr)
      .to match(/\Amemprof: the file of the recording of malloc ends early: .*File too large.*\n\z/)
    expect(recording.slice(:complete, :damaged_at)).to eq(complete: false, damaged_at: nil)
    expect(in_child('Memprof::Malloc.record("/dev/full") { }').stderr).to include("No space left on device")
  end

  it "leaves out what a forked child allocates, which may record on its own" do
    result = in_child(<<~'RUBY')
      Memprof::Malloc.record(PATH) do
        $parent = "a" * 200_000
        Process.wait(fork do
          $child = "b" * 600_000
          Memprof::Malloc.stop
          Memprof::Malloc.record("#{PATH}.child") { $more = "c" * 700_000 }
        end)
        p $?.success?
        $later = "d" * 800_000
      end
    RUBY
    expect([result.stderr, result.stdout]).to eq ["", "true\n"]
    summary = recording
    expect(%w[-e:3 -e:5 -e:10].map { |name| row(summary, name)&.fetch(:leaked_bytes) })
      .to match([about(200_001), nil, about(800_001)])
    child = Memprof::Malloc::Recording.new("#{path}.child").to_h
    expect(child[:complete]).to be true
    expect(row(child, "-e:7")).to include(leaked_bytes: about(700_001))
  end

  it "refuses what is no recording, and a second one" do
    File.write(path, "no recording at all")
    expect {
      recording
    }.to raise_error(Memprof::Error, "cannot read #{path}: it is not a recording of malloc")
    expect { Memprof::Malloc::Recording.new("#{path}.no") }
      .to raise_error(Memprof::Error, "cannot read #{path}.no: No such file or directory")
    result = in_child(<<~'RUBY')
      begin
        Memprof::Malloc.start
        Memprof::Malloc.record(PATH)
      rescue Memprof::Error => e
        puts e.message, File.read(PATH)
      end
    RUBY
    expect(result.stdout).to eq "a recording of malloc runs already\nno recording at all\n"
  end

  it "is compared with another, without leaks that are known, and in part" do
    in_child(<<~'RUBY')
      def import(size) = ($kept ||= []) << ("a" * size)
      def known = $known = "b" * 150_000
      Memprof::Malloc.record("#{PATH}.old") { import(300_000) }
      Memprof::Malloc.record(PATH) { known; import(400_000); 3.times { import(50_000) } }
    RUBY
    old = Memprof::Malloc::Recording.new("#{path}.old")
    new = Memprof::Malloc::Recording.new(path, suppressions: "# once\nleak:^known$\n")
    expect(new.to_h).to include(suppressed: (be >= 1), suppressed_bytes: about(150_001))
    expect(new.to_s).to match(/^Known leaks, not counted: 1[45]\d\.\d KiB in \d+ blocks?\.$/)
    change = old.compare(new).to_h[:locations].find { |row| row[:location] == "-e:2" }
    expect(change).to include(before: a_hash_including(leaked_bytes: about(300_001)),
      change: a_hash_including(allocations: (be >= 1), leaked_bytes: be_within(10_000).of(250_000)))
    expect(old.compare(new).to_s).to match(/^Change, live at the end .*\n +\+2[345]\d\.\d KiB .* -e:2$/)
    expect(old.compare(old).to_h[:locations]).to eq []
    late = Memprof::Malloc::Recording.new(path, from: 3_000)
    expect(late.to_h[:total]).to include(allocations: 0, leaked_bytes: (be >= 700_000))
    expect(late.to_s).to match(/^0 calls allocated 0 B$/)
    File.write("#{path}.known", "race:x")
    shown = run_memprof("malloc", "#{path}.old", path)
    expect([shown.stderr, shown.stdout]).to match(["", /^Live at the peak +\+/])
    expect(run_memprof("malloc", "--suppressions", "#{path}.known", path).stderr)
      .to eq "memprof: #{path}.known: line 1 is not a suppression: race:x\n"
    expect(run_memprof("malloc", "--from", "-1", path).stderr)
      .to start_with 'memprof: invalid --from "-1"; expected a number of seconds'
  end

  it "refuses wrong options before and after its name alike" do
    in_child("Memprof::Malloc.record(PATH) { $kept = 'a' * 300_000 }")
    {
      %w[--from x] => 'invalid --from "x"; expected a number of seconds',
      %w[--function] => "missing argument: --function; see `memprof help malloc`",
      %w[--limit 99999999999] =>
        'invalid --limit "99999999999"; expected a number of at most 1000000000',
      %w[--min-size 5] => "--min-size is for commands; see `memprof help malloc`",
      %w[--tree --callers] => "--tree and --callers exclude each other",
      %w[--from 5 --to 1] => 'invalid --to "1.0"; expected a number of seconds that is not before --from',
      %w[--suppressions /no/such/file] => "cannot read /no/such/file: no such file"
    }.each do |words, message|
      expect(run_memprof("malloc", path, *words).stderr).to eq("memprof: #{message}\n")
      next if words == ["--function"] # takes what follows for its value

      expect(run_memprof("malloc", *words, path).stderr).to eq("memprof: #{message}\n")
    end
    File.binwrite("#{path}.known", "leak:\xFF\n")
    expect(run_memprof("malloc", "--suppressions", "#{path}.known", path).stderr)
      .to eq("memprof: #{path}.known: suppressions are not valid text\n")
  end

  it "of memprof run --malloc is named that says most, as that of what a program became by exec" do
    exec = [RbConfig.ruby, "-e", "Array.new(100) { |row| row.to_s * 9000 }"].map(&:dump).join(", ")
    2.times do # what an earlier run left is not that of this one
      ran = run_memprof("run", "--malloc", "-o", path, "--", RbConfig.ruby, "-e", "exec #{exec}")
      expect(ran.stderr).to match(/\Amemprof: also recorded: (\S+)\nNext: memprof malloc \1\n\z/)
    end
  end

  it "is written by memprof run --malloc for each Ruby process, and shown by memprof malloc" do
    code = 'kept = "a" * 900_000; system("RBCONFIG -e 1") unless ENV["INNER"]; exit 3'
    code = code.sub("RBCONFIG", RbConfig.ruby)
    ran = run_memprof("run", "--malloc", "-o", path, "--", RbConfig.ruby, "-e", code)
    expect([ran.stdout, ran.status.exitstatus]).to eq ["", 3]
    other = (Dir.children(@directory) - ["app.malloc"]).first
    expect(other).to match(/\Aapp\.\d+\.malloc\z/)
    expect(ran.stderr)
      .to eq "memprof: also recorded: #{@directory}/#{other}\nNext: memprof malloc #{path}\n"
    shown = run_memprof("malloc", path, "--limit", "1")
    expect(shown.stderr).to eq ""
    expect(shown.stdout)
      .to match(/^ *Live at the end .*\n +8[78]\d\.\d KiB .* -e:1\n\.\.\. \d+ more \(--limit N\)$/)
    expect(JSON.parse(run_memprof("malloc", "--json", path).stdout)).to include("complete" => true)
    expect(run_memprof("malloc", "--min-size", "5", path).stderr)
      .to eq "memprof: --min-size is for commands; see `memprof help malloc`\n"
    expect(run_memprof("run", "--malloc", "true").stderr)
      .to eq "memprof: --malloc needs a file; give --output FILE\n"
    expect(run_memprof("run", "--native", "true").stderr).to eq "memprof: --native needs --malloc\n"
    expect(run_memprof("run", "--addresses", "true").stderr).to eq "memprof: --addresses needs --malloc\n"
    expect(run_memprof("run", "--malloc", "--peak", "-o", path, "true").stderr)
      .to eq "memprof: --peak cannot be used with --malloc\n"
  end
end
