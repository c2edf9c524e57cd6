# frozen_string_literal: true

require "json"
require "tmpdir"

# Recordings of malloc against what others count, to the byte.
RSpec.describe "A recording of malloc and the truth" do
  rounds = 40

  before(:all) do
    @directory = Dir.mktmpdir
    flags = { "counter" => %w[-shared -fPIC -ldl], "program" => %w[-pthread], "early" => %w[-shared -fPIC] }
    @built = flags.all? do |name, options|
      source = File.join(__dir__, "../fixtures/malloc", "#{name}.c")
      system("cc", "-O1", "-fno-builtin", "-w", "-o", file(name), source, *options, err: File::NULL)
    end
  end

  before do
    skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux")
    skip "there is no C compiler" unless @built
  end

  after(:all) { FileUtils.rm_rf(@directory) }

  def file(name) = File.join(@directory, name)

  def preload
    skip "this Ruby has no libruby" unless File.read("/proc/self/maps").include?("/libruby")
  end

  # What the program prints, and its recording's totals.
  def recorded(*arguments, env: {})
    path = file("app.malloc")
    ran = run_memprof("run", "--malloc", "-o", path, "--", file("program"), *arguments.map(&:to_s), env: env)
    expect([ran.stderr, ran.status.exitstatus]).to eq(["Next: memprof malloc #{path}\n", 0])
    recording = Memprof::Malloc::Recording.new(path)
    expect(recording.to_h).to include(complete: true, missed: 0)
    [ran.stdout, recording.to_h[:total].values_at(:allocations, :allocated_bytes, :leaked, :leaked_bytes)]
  end

  def counted(*arguments)
    ran = run_command(file("program"), *arguments.map(&:to_s),
      env: { "LD_PRELOAD" => file("counter"), "COUNTED" => file("counted") })
    expect([ran.stderr, ran.status.exitstatus]).to eq(["", 0])
    JSON.parse(File.read(file("counted")))
  end

  # What the rounds add to what the start of the process and of its threads take, which others count
  # otherwise.
  def added
    none, some = [0, rounds].map { |number| yield(number) }
    some.zip(none).map { |after, before| after - before }
  end

  define_method(:rounds) { rounds }

  it "has the totals that a preloaded counter sees" do
    preload
    truth = added { |number| counted(number) }
    expect(truth[0]).to be > 8 * 64 * rounds
    expect(added { |number| recorded(number).last }).to eq(truth)
    # Beside the counter, which looks up libc's functions when they are called first.
    beside = { "LD_PRELOAD" => file("counter") }
    expect(added { |number| recorded(number, env: beside).last }).to eq(truth)
  end

  it "leaves usable sizes as they are" do
    preload
    plain = run_command(file("program"), rounds.to_s).stdout
    expect(Integer(plain)).to be > 1_000_000
    expect(Integer(recorded(rounds).first)).to be_within(plain.to_i / 200).of(plain.to_i)
  end

  it "has the leaks that heaptrack sees" do
    preload
    skip "heaptrack is not installed" unless system("which heaptrack heaptrack_print", out: File::NULL)

    # For heaptrack realloc to zero does not free, so the program does without.
    leaked = ->(number) do
      Dir.glob(file("heaptrack.*")).each { |path| File.delete(path) }
      ran = run_command("heaptrack", "--output", file("heaptrack"), file("program"), number.to_s, "other")
      expect(ran.status.exitstatus).to eq(0)
      data, = Dir.glob(file("heaptrack.*"))
      run_command("heaptrack_print", "-f", data, "--print-flamegraph", file("flame"),
        "--flamegraph-cost-type", "leaked")
      [File.readlines(file("flame")).sum { |line| Integer(line[/\d+$/]) }]
    end
    truth = added(&leaked)
    expect(truth.first).to be > 100_000
    # To the byte on an idle machine; its own threads may lose some blocks, and the counter above is exact.
    leaked_bytes, = added { |number| recorded(number, "other").last.last(1) }
    expect(leaked_bytes).to be_within(truth.first / 100).of(truth.first)
  end

  it "takes calloc of a library that is initialized before, and its blocks later" do
    preload
    printed, counts = recorded(0, env: { "LD_PRELOAD" => file("early") })
    without = recorded(0).last
    expect(printed).to eq("0\n")
    # Only realloc, of 1000 blocks, 500 of them from before the recording.
    expect(counts.zip(without).map { |after, before| after - before }).to eq([1_000, 5_000_000, 0, 0])
  end

  it "has the native memory of each Ractor" do
    result = run_ruby(<<~RUBY)
      require "memprof/malloc"
      Memprof::Malloc.start
      ractors = Array.new(4) do
        Ractor.new do
          Array.new(200) { |index| "x" * (10_000 + index) }.tap do |kept|
            5_000.times { "y" * 3_000 }
            kept.each_with_index { |text, index| text.clear if index.odd? }
          end
        end
      end
      kept = ractors.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
      Memprof::Malloc.stop
      sizes = Memprof::Malloc["-e:5"].each.map { |size, _| size }.select { |size| size.between?(10_000, 11_000) }
      p sizes.tally == kept.flatten.reject(&:empty?).map { |text| text.bytesize + 1 }.tally
      location = Memprof::Malloc["-e:6"]
      # A block has no line while another Ractor sweeps.
      p location.allocations.between?(19_900, 20_100), location.total.between?(59_500_000, 60_100_000)
      p Memprof::Malloc.missed
    RUBY
    # Ruby warns of Ractors.
    expect([result.stderr.lines.grep_v(/Ractor/), result.stdout.lines(chomp: true)])
      .to eq([[], %w[true true true 0]])
  end
end
