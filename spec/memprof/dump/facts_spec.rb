# frozen_string_literal: true

require "memprof/dump"

RSpec.describe Memprof::Dump::Facts do
  let(:options) { Memprof::Dump::Options.new }
  let(:closed) { Memprof::Dump::Options.new(values: :none) }

  def whole(options)
    described_class.whole(options)
  end

  def notes(facts, kind)
    [*facts[:before], *facts[:after]].filter_map { |name, json| JSON.parse(json) if name == kind }
  end

  it "are not asked for where the format has no place for them" do
    options = Memprof::Dump::Options.new(format: :objspace)
    expect(Memprof::Dump::Globals).not_to receive(:read)
    expect([whole(options), described_class.header(options)]).to all(eq(options.to_native))
  end

  describe "the header" do
    let(:header) { JSON.parse(described_class.header(options)[:header]) }

    it "says which process, which Ruby, and when" do
      expect(header.first(4)).to eq([%w[_id header], %w[type header], %w[format memprof], ["version", 1]])
      expect(header).to include("pid" => Process.pid, "ppid" => Process.ppid, "program" => $PROGRAM_NAME,
        "arguments" => ARGV, "ruby" => RUBY_DESCRIPTION,
        "ruby_version" => RUBY_VERSION, "platform" => RUBY_PLATFORM,
        "memprof" => Memprof::VERSION, "values" => "full")
      time = Time.new(*header["time"].scan(/[\d.]+/).first(5).map(&:to_i),
        header["time"][/(\d+\.\d+)Z\z/, 1].to_r, 0)
      expect(header["time"]).to match(/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\z/)
      expect(time.to_r * 1_000_000).to eq(header["time_us"])
      expect(header["time_us"] / 1e6).to be_within(600).of(Time.now.to_f)
    end

    it "says what the collector has done" do
      count = without_gc { header && GC.count }
      expect(header["gc"].keys).to eq(GC.stat.keys.map(&:to_s))
      expect(header).to include("gc_count" => count, "generation" => count,
        "moved" => header["compactions"] > 0)
      expect(header["rss"]).to be > 10_000_000 if File.exist?("/proc/self/status")
    end

    it "says whether objects were tracked" do
      expect(header["tracking"]).to be(false)
      Memprof.track(StringIO.new) do
        expect(JSON.parse(described_class.header(options)[:header])["tracking"]).to be(true)
      end
    end

    it "does not say how the program was started, where contents are not wanted" do
      facts = JSON.parse(described_class.header(closed)[:header])
      expect(facts.keys & %w[program arguments hostname]).to be_empty
      expect(facts).to include("values" => "none", "pid" => Process.pid)
    end

    it "is there whatever the program's name and arguments are" do
      code = <<~'RUBY'
        $0 = "caf\xE9 \xF0"; ARGV << "\xFF".b << "\u2028"
        require "memprof"; require "memprof/dump"
        puts Memprof::Dump::Facts.header(Memprof::Dump::Options.new)[:header]
      RUBY
      stdout, stderr, = run_ruby(code)
      expect(stderr).to be_empty
      expect(JSON.parse(stdout)["arguments"]).to eq(["\\xFF", "\u2028"])
    end
  end

  describe "the globals" do
    it "are there with their values" do
      $memprof_spec_global = Object.new
      globals = notes(whole(options), "globals").first
      expect(globals).to include("_id" => "globals", "type" => "globals")
      expect(globals["variables"]).to include(":$memprof_spec_global" => a_string_matching(/\A0x\h+\z/),
        ":$$" => Process.pid, ":$DEBUG" => false, ":$VERBOSE" => $VERBOSE, ":$-W" => $-W)
    ensure
      $memprof_spec_global = nil
    end

    it "come with the values themselves, for the labels of roots" do
      expect(whole(options)[:globals].to_h["$LOADED_FEATURES"]).to equal($LOADED_FEATURES)
    end

    it "take nothing from the program's arguments" do
      code = <<~'RUBY'
        require "memprof"; require "memprof/dump"
        Memprof::Dump::Facts.whole(Memprof::Dump::Options.new)
        puts ARGV
      RUBY
      expect(run_ruby(code, args: [__FILE__, "two"]).stdout).to eq("#{__FILE__}\ntwo\n")
    end

    it "warn of nothing, raise nothing, and leave out those of a frame" do
      code = <<~'RUBY'
        require "English"
        require "memprof"; require "memprof/dump"
        trace_var(:$x, proc { raise "no" })
        "a" =~ /a/
        facts = Memprof::Dump::Globals.read.map(&:first)
        p facts.grep(/\A\$[~&`'+_=]\z|\A\$\d|MATCH|LAST_|IGNORECASE/), $VERBOSE, $~[0]
      RUBY
      stdout, stderr, = run_ruby(code, ruby_args: %w[-w -W:deprecated])
      expect(stderr).to be_empty
      expect(stdout).to eq(%([]\ntrue\n"a"\n))
    end

    it "hide what is a value and no object, where contents are not wanted" do
      variables = notes(whole(closed), "globals").first["variables"]
      expect(variables).to include(":$$" => "(hidden)", ":$DEBUG" => false)
    end
  end

  it "has the frames, the innermost first, without memprof's own" do
    facts = described_class.whole(options)
    line = __LINE__ - 1
    frames = notes(facts, "frame")
    expect(frames[0]).to include("_id" => "frame:0", "type" => "frame", "file" => __FILE__, "line" => line)
    expect(frames.map { |frame| frame["file"] }.grep(%r{/lib/memprof/})).to be_empty
    expect(frames.size).to be > 5
  end

  describe "what /proc says" do
    before { skip "no /proc here" unless File.exist?("/proc/self/fd") }

    it "has the open files" do
      File.open(__FILE__) do |file|
        notes = notes(whole(options), "lsof")
        expect(notes[0]).to include("_id" => "lsof:0", "type" => "lsof")
        expect(notes).to include(a_hash_including("fd" => "#{file.fileno}r", "fd_type" => "REG",
          "fd_name" => __FILE__))
        expect(notes(whole(closed), "lsof").flat_map(&:keys)).not_to include("fd_name")
      end
    end

    it "has sizes in KiB, as text" do
      sizes = notes(whole(options), "ps").first
      expect(sizes).to include("_id" => "ps", "type" => "ps")
      expect(sizes["rss"].to_i).to be_within(50_000).of(File.read("/proc/self/status")[/VmRSS:\s*(\d+)/,
        1].to_i)
      expect(sizes["vsize"].to_i).to be > sizes["rss"].to_i
    end
  end
end
