# frozen_string_literal: true

require "json"
require "stringio"

RSpec.describe Memprof::Growth do
  def site(**facts)
    Memprof::Growth::Site.new(**{
      file: "/srv/shop/app/cache.rb", line: 12, class_name: "String", slope: 10.0, low: 9.83,
      counts: (1..20).map { |run| run * 10 }, bytes: 400.0
    }.merge(facts))
  end

  let(:growth) do
    slow = site(file: "/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.0/lib/rack.rb", line: 7, class_name: "Hash",
      slope: 0.052, low: 0.01, counts: [0] * 19 + [1], bytes: nil)
    described_class.new([slow, site], runs: 20, warmup: 3)
  end
  let(:nothing) { described_class.new([], runs: 20, warmup: 3) }

  # Tracking is process-wide: a block is measured in a process of its own. `code` prints what it found.
  def in_child(code)
    result = run_ruby("require \"memprof\"\n#{code}")
    expect(result.stderr).to eq ""
    expect(result).to be_success
    result.stdout
  end

  describe "what grows" do
    it "is enumerated, fastest first" do
      expect(growth.map(&:class_name)).to eq %w[String Hash]
      expect(growth.each.size).to eq 2
      seen = []
      expect(growth.each { |site| seen << site }).to equal growth
      expect(seen).to eq growth.sites
    end

    it "is something or nothing" do
      expect([growth.grows?, growth.empty?]).to eq [true, false]
      expect([nothing.grows?, nothing.empty?]).to eq [false, true]
    end

    it "comes with the number of runs" do
      expect([growth.runs, growth.warmup]).to eq [20, 3]
    end
  end

  describe "#to_s" do
    it "is a table with a picture of the counts" do
      expect(growth.to_s(unicode: true)).to match_snapshot("growth/table")
    end

    it "does with ASCII where there is no more" do
      expect(growth.to_s(unicode: false)).to match_snapshot("growth/ascii")
      expect(growth.to_s(unicode: false)).to be_ascii_only
    end

    it "says so if nothing grows" do
      expect(nothing.to_s).to eq "Nothing grows over 20 runs.\n"
    end

    it "knows one site from many" do
      text = described_class.new([site], runs: 4, warmup: 0).to_s
      expect(text).to start_with("1 site grows over 4 runs.\n")
    end

    it "is painted if asked for" do
      expect(growth.to_s(color: true)).to start_with("\e[1m2 sites grow over 20 runs.\e[0m\n")
      expect(nothing.to_s(color: true)).to eq "\e[32mNothing grows over 20 runs.\e[0m\n"
    end

    it "stays a table whatever the names contain" do
      hostile = site(file: "/a\n;\xFF.rb", class_name: "Odd\e[2J".b)
      text = described_class.new([hostile], runs: 20, warmup: 3).to_s
      expect(text.lines.last).to include('Odd\e[2J  /a\n;\xFF.rb:12').and be_valid_encoding
    end
  end

  describe "#to_markdown" do
    it "is a table" do
      expect(growth.to_markdown).to match_snapshot("growth/table.md")
    end

    it "says so if nothing grows" do
      expect(nothing.to_markdown).to eq "Nothing grows over 20 runs.\n"
    end
  end

  describe "#to_h and #to_json" do
    it "carry everything" do
      expect(growth.to_h).to include(format: "memprof-growth", version: 1, runs: 20, warmup: 3)
      expect(growth.to_h[:sites]).to eq growth.map(&:to_h)
      expect(JSON.parse(growth.to_json)["sites"][0]).to include("file" => "/srv/shop/app/cache.rb",
        "line" => 12, "class" => "String", "objects_per_run" => 10.0, "objects_per_run_low" => 9.83,
        "bytes_per_run" => 400.0)
      expect(JSON.parse(JSON.generate([nothing]))).to eq [JSON.parse(nothing.to_json)]
    end

    it "are valid UTF-8 whatever the names contain" do
      json = described_class.new([site(file: "/a\n\xFF.rb")], runs: 20, warmup: 3).to_json
      expect(json).to be_valid_encoding
      expect(JSON.parse(json)["sites"][0]["file"]).to eq "/a\n\\xFF.rb"
    end
  end

  describe "#write" do
    it "writes every format" do
      texts = described_class::FORMATS.map do |format|
        StringIO.new.tap { |io| growth.write(io, format: format) }.string
      end
      expect(texts).to eq [growth.to_s, "#{growth.to_json}\n", growth.to_markdown]
      expect { growth.write }.to output(growth.to_s).to_stdout
    end

    it "lists what exists if there is no such format" do
      expect { growth.write(StringIO.new, format: :pprof) }
        .to raise_error(ArgumentError, "unknown format :pprof; expected one of: text, json, markdown")
    end

    it "writes a file that only its owner can read" do
      Dir.mktmpdir do |directory|
        path = File.join(directory, "growth.json")
        growth.write(path, format: "json")
        expect([File.read(path), File.stat(path).mode & 0o777]).to eq ["#{growth.to_json}\n", 0o600]
      end
    end
  end

  describe "#inspect" do
    it "is short" do
      expect(growth.inspect).to eq "#<Memprof::Growth 2 growing over 20 runs>"
    end
  end

  describe ".measure" do
    it "needs a block" do
      expect { described_class.measure }.to raise_error(ArgumentError, "block required")
    end

    it "needs enough runs to distinguish growth from chance" do
      [3, 0, -1, 4.5, nil, "20"].each do |times|
        expect { described_class.measure(times: times) { nil } }
          .to raise_error(ArgumentError, "times must be an Integer of at least 4, not #{times.inspect}")
      end
    end

    it "needs a number of runs to warm up" do
      [-1, 1.5, nil].each do |warmup|
        expect { described_class.measure(warmup: warmup) { nil } }
          .to raise_error(ArgumentError, "warmup must be an Integer of at least 0, not #{warmup.inspect}")
      end
    end

    it "finds what grows, and by how much" do
      output = in_child(<<~RUBY)
        cache = []; require "objspace"
        growth = Memprof::Growth.measure(times: 8, warmup: 2, max_times: 8) do
          3.times { cache << Object.new }
          10.times { "garbage".dup }
        end
        site = growth.first
        p growth.count, site.location, site.class_name, site.slope.round(3), site.counts
        p site.bytes.round == 3 * ObjectSpace.memsize_of(Object.new)
      RUBY
      expect(output).to eq %(1\n"-e:4"\n"Object"\n3.0\n[3, 6, 9, 12, 15, 18, 21, 24]\ntrue\n)
    end

    it "finds nothing where nothing grows, least of all in its own books" do
      output = in_child(<<~RUBY)
        cache = {}
        growth = Memprof::Growth.measure(times: 10, warmup: 1) do
          20.times { |key| cache[key] = "value".dup }
          Array.new(100) { |index| index.to_s }
        end
        puts growth
      RUBY
      expect(output).to eq "Nothing grows over 10 runs.\n"
    end

    it "takes the turnover of a bounded structure for no growth" do
      output = in_child(<<~RUBY)
        Row = Class.new
        turn = 0
        ring = Array.new(64) { Row.new }
        names = Array.new(64) { +"name" }
        kept = []
        growth = Memprof::Growth.measure(times: 20, warmup: 3) do
          turn += 1
          ring[turn % 64] = Row.new
          names[turn % 64] = turn.to_s
          kept << Row.new if (turn % 3).zero?
        end
        p growth.map(&:location)
      RUBY
      expect(output).to eq %(["-e:11"]\n)
    end

    it "finds a container that grows, though the number of objects does not" do
      output = in_child(<<~RUBY)
        NUMBERS = []
        growth = Memprof::Growth.measure(times: 4, max_times: 4) { NUMBERS << 1 }
        p growth.count, growth.first.to_h.values
        p growth.first
        puts growth.to_s(unicode: false)
      RUBY
      expect(output).to eq <<~'TEXT'
        1
        ["(before the first run)", 0, "Array", 0.0, 0.0, 8.0, [1, 1, 1, 1], [8, 16, 24, 32], "NUMBERS"]
        #<Memprof::Growth::Site (before the first run) Array +8.00 bytes a run>
        1 site grows over 4 runs.

        Objects/run  At least  Bytes/run  Live  Over the runs  Class  Allocated at
                  -         -       +8 B     1  _-+#           Array  (before the first run)

        Array retained by NUMBERS
      TEXT
    end

    it "says what retains the objects" do
      output = in_child(<<~RUBY)
        Connection = Struct.new(:history)
        CONNECTIONS = Array.new(20) { Connection.new([]) }
        growth = Memprof::Growth.measure(times: 6, max_times: 6) do
          CONNECTIONS.each { |connection| connection.history << "entry".dup }
        end
        puts growth.map(&:retained_by), growth.to_markdown.lines.last
      RUBY
      retained = "CONNECTIONS -> Array[*] -> Connection.history -> Array[*]"
      expect(output).to eq("#{retained}\n- String at -e:5 retained by #{retained}\n")
    end

    it "does without that where the heap can't be read" do
      allow(Memprof::Heap).to receive(:capture).and_raise(Memprof::Error, "no room")
      expect(Memprof::Growth::Holders.of([site])).to eq({})
    end

    it "finds a text that takes the place of a shorter one" do
      output = in_child(<<~RUBY)
        text = nil
        p Memprof::Growth.measure(times: 8, max_times: 8) { text = "\#{text}12345" }
          .map { |site| [site.location, site.class_name, site.bytes >= 5] }
      RUBY
      expect(output).to match(/\A\[\["-e:\d+", "String", true\]\]\n\z/)
    end

    # What the collector finds on the machine stack lives some runs longer, and is no growth that slows down.
    it "finds it beside texts that stay from the first runs on" do
      output = in_child(<<~RUBY)
        texts, run = [], -1
        growth = Memprof::Growth.measure(times: 8, warmup: 0, max_times: 8) do
          texts[[run += 1, 2].min] = "x" * (500 + 10 * run)
        end
        p growth.map { |site| [site.class_name, site.counts, site.contents.first, site.contents.last] }
      RUBY
      expect(output).to match(/\A\[\["String", \[1, (\d), (\d)(, \2)+\], 500, \d+\]\]\n\z/)
    end

    it "runs on while something grows, and takes a memo that fills up for no growth", :untyped do
      output = in_child(<<~RUBY)
        Entry = Class.new
        [20, nil].each do |most|
          random, memo = Random.new(1), {}
          growth = Memprof::Growth.measure(max_times: most) { memo[random.rand(100)] ||= Entry.new }
          p growth.map(&:location)
        end
        kept = []
        p Memprof::Growth.measure { kept << Entry.new }.then { |growth| [growth.count, growth.runs] }
        p Memprof::Growth.measure(times: 8, max_times: 30) { kept << Entry.new }.runs
      RUBY
      expect(output).to eq %(["-e:5"]\n[]\n[1, 120]\n30\n)
    end

    it "needs at most as many runs as are allowed" do
      [19, 20.5, "40"].each do |most|
        expect { described_class.measure(max_times: most) { nil } }.to raise_error(ArgumentError,
          "max_times must be an Integer of at least times (20), not #{most.inspect}")
      end
    end

    it "runs the block as often as asked" do
      output = in_child("runs = 0; Memprof::Growth.measure(times: 4, warmup: 0) { runs += 1 }; p runs\n" \
        "runs = 0; Memprof::Growth.measure(times: 5, warmup: 2) { runs += 1 }; p runs")
      expect(output).to eq "4\n7\n"
    end

    it "leaves nothing on if the block raises or is left" do
      output = in_child(<<~RUBY)
        runs = 0
        begin
          Memprof::Growth.measure(warmup: 0) { (runs += 1) > 2 and raise "no" }
        rescue => e
          p e.message
        end
        p Memprof::Growth.measure(warmup: 0) { break :left }
        p catch(:done) { Memprof::Growth.measure(warmup: 0) { throw :done, :thrown } }
        p Memprof.running?
      RUBY
      expect(output).to eq %("no"\n:left\n:thrown\nfalse\n)
    end
  end
end
