# frozen_string_literal: true

require "json"
require "tmpdir"

RSpec.describe "functions of a recording of malloc" do
  before { skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux") }

  around { |example| Dir.mktmpdir { |directory| (@directory = directory) && example.run } }

  let(:path) { File.join(@directory, "app.malloc") }
  let(:recording) { Memprof::Malloc::Recording.new(path) }

  before do
    result = run_ruby(<<~RUBY)
      require "memprof/malloc"
      ("a" * 2).clear
      def parse(size) = "x" * size
      def import = Array.new(10) { parse(50_000) }
      def down(depth) = depth.zero? ? parse(300_000) : down(depth - 1)
      Memprof::Malloc.record(#{path.inspect}) { $kept = [import, down(5)] }
    RUBY
    raise result.stderr unless result.status.success?
  end

  # A line may have a table for the cache of a method besides its own blocks.
  def about(bytes) = be_between(bytes, bytes + 10_000)

  def row(name) = recording.functions.find { |one| one[:name] == "#{name} (-e)" }

  it "have what they allocated, with and without what they called" do
    expect(row("parse")).to match(name: "parse (-e)", self_bytes: about(800_000), bytes: about(800_000))
    expect(row("import")).to include(self_bytes: about(0), bytes: about(500_000))
    # Five calls of itself are one stack.
    expect(row("down")).to include(self_bytes: about(0), bytes: about(300_000))
    rows = recording.functions
    expect(rows.map { |one| one[:bytes] }).to eq(rows.map { |one| one[:bytes] }.sort.reverse)
    expect(rows.sum { |one| one[:self_bytes] }).to eq(recording.to_h[:total][:peak_bytes])
  end

  it "have callers and callees" do
    parse = recording.functions("parse")
    expect(parse.size).to eq(1)
    expect(parse.first[:callers]).to match([
      { name: "block in import (-e)", bytes: about(500_000) }, { name: "down (-e)", bytes: about(300_000) }
    ])
    down = recording.functions("down (-e)", value: :allocated).first
    expect(down[:callers].first[:name]).to eq("block in <main> (-e)")
    expect(down.values_at(:callers, :callees).map { |rows| rows.map { |one| one[:name] } })
      .to match([include("down (-e)"), include("parse (-e)", "down (-e)")])
    expect(recording.functions("nothing")).to eq([])
  end

  it "are shown by memprof malloc" do
    all = run_memprof("malloc", "--functions", "--limit", "4", path).stdout
    expect(all).to match(/\ALive at the peak: .*, by function\n *With callees +Share +Self +Share +Functi/)
    expect(all).to match(/^ *78\d\.\d KiB +\d\d+ % +78\d\.\d KiB +\d\d+ %  parse \(-e\)$/)
    one = run_memprof("malloc", "--function", "parse", path).stdout
    size = /78\d\.\d KiB/
    expect(one).to match(/\Aparse \(-e\): live at the peak #{size}, #{size} of it allocated by itself\n/)
    expect(one).to match(/Called by\n *4\d\d\.\d KiB +6\d %  block in import \(-e\)\n/)
    expect(one).to match(/^ *29\d\.\d KiB +3\d %  down \(-e\)$/)
    json = run_memprof("malloc", "--function", "parse", "--json", path).stdout
    expect(JSON.parse(json, symbolize_names: true)).to eq(recording.functions("parse"))
    expect(JSON.parse(run_memprof("malloc", "--functions", "--json", path).stdout, symbolize_names: true))
      .to eq(recording.functions)
  end

  it "says what is wrong" do
    {
      %w[--function nothing] => "no function \"nothing\" has peak bytes in the recording; " \
        "--functions lists those that have some",
      %w[--functions --tree] => "--functions and --tree exclude each other"
    }.each do |options, message|
      wrong = run_memprof("malloc", *options, path)
      expect([wrong.stderr, wrong.status.exitstatus]).to eq(["memprof: #{message}\n", 2])
    end
    expect(run_memprof("malloc", "--tree", path, path).stderr)
      .to eq("memprof: --tree shows one recording; LATER is another one\n")
    expect(run_memprof("malloc", "--functions", "true").stderr)
      .to eq("memprof: --functions is for recordings; see `memprof help malloc`\n")
  end
end
