# frozen_string_literal: true

require "json"
require "stringio"

RSpec.describe Memprof::Report do
  subject(:report) { described_class.new(profile) }

  let(:profile) { FakeProfile.leaky }

  # Names with everything that breaks a table, a JSON document or a terminal.
  def hostile
    FakeProfile.new(
      [
        FakeProfile.row("/srv/odd\n/a;b\xFF.rb", 1, "Odd\n\e[2JClass;`|", method: "x\0y;\xC3",
          retained: [1, 40]),
        FakeProfile.row("/srv/Größe.rb".encode("ISO-8859-1"), 2, "Bin\xE2".b, freed: [3, 120], ages: [0.5, 1])
      ],
      allocated_strings: [["se;\xFF\n".b, 2, [["/srv/odd\n.rb:1", 2]]]],
      meta: { "command" => "ruby \xFF\n" }
    )
  end

  describe "totals" do
    it "counts what was allocated and what is alive" do
      expect([report.total_allocated, report.total_allocated_memsize]).to eq [510_905, 85_316_200]
      expect([report.total_retained, report.total_retained_memsize]).to eq [10_015, 1_282_136]
      expect(report.totals["freed"]).to eq("objects" => 500_890, "bytes" => 84_034_064)
    end

    it "returns the facts of the run" do
      expect(report.meta).to include("gc_count" => 14, "sample" => 1)
    end
  end

  describe "retained objects" do
    # In a process of its own: what lies on the machine stack depends on all that ran before.
    it "are not those that a block left on the machine stack only" do
      code = <<~RUBY
        require "memprof/memory_profiler"
        require "memprof/middleware/endpoint"
        class App
          def call(_env) = [200, { "content-type" => "text/plain" }, ["text" * 50_000]]
        end
        app = App.new
        env = { "HTTP_ACCEPT" => "text/plain", "QUERY_STRING" => "memprof=allocations" }
        middleware = Memprof::Middleware.new(app, permit: ->(_env) { true })
        page = -> { middleware.call(env.dup).last.first }
        3.times { Memprof.report { app.call({}) } }
        p Array.new(3) { Memprof.report { app.call({}) }.total_retained_memsize < 10_000 }
        p Array.new(3) { Memprof.report { app.call({}) && nil }.total_retained_memsize < 10_000 }
        p Array.new(3) { MemoryProfiler.report { app.call({}) && nil }.total_retained_memsize < 10_000 }
        p Array.new(6) { page.call.match?(/\\d B\\) alive at its end$/) }.last(3)
      RUBY
      expect(run_ruby(code).stdout.lines(chomp: true)).to eq ["[true, true, true]"] * 4
    end
  end

  describe "groups" do
    it "have memory_profiler's names and shape, most first, ties by name" do
      expect(report.allocated_memory_by_class).to eq [
        { data: "Hash", count: 84_000_000 }, { data: "String", count: 1_280_080 },
        { data: "Set", count: 36_000 }, { data: "Array", count: 120 }
      ]
      expect(report.retained_objects_by_gem)
        .to eq [{ data: "shop/app", count: 10_003 }, { data: "rack-3.1.0", count: 12 }]
      expect(report.retained_memory_by_location.first)
        .to eq(data: "/srv/shop/app/cache.rb:12", count: 1_280_120)
      expect(report.allocated_objects_by_file.last).to eq(data: "/usr/lib/ruby/3.4.0/set.rb", count: 900)
    end

    it "exist for each kind, measure and name" do
      %w[allocated retained].product(%w[memory objects], %w[gem file location class method]).each do |words|
        groups = report.public_send("#{words[0]}_#{words[1]}_by_#{words[2]}")
        expect(groups).to be_frozen.and all(match(data: String, count: Integer))
        expect(groups.map { |group| group[:count] }).to eq groups.map { |group| group[:count] }.sort.reverse
      end
    end

    it "are asked for once" do
      allow(profile).to receive(:group).and_call_original
      2.times { report.allocated_memory_by_method }
      expect(profile).to have_received(:group).once
    end

    it "keep to the top" do
      report = described_class.new(profile, top: 1)
      expect(report.allocated_memory_by_class).to eq [{ data: "Hash", count: 84_000_000 }]
      expect([report.top, report.strings_allocated.size, report.sites.size]).to eq [1, 1, 4]
    end

    it "need a top that is a number" do
      [0, -1, 2.5, "5", nil].each do |top|
        expect { described_class.new(profile, top: top) }
          .to raise_error(ArgumentError, "top must be a positive Integer, not #{top.inspect}")
      end
    end
  end

  describe "strings" do
    it "have memory_profiler's shape" do
      expect(report.strings_allocated).to eq [
        ["GET", [["/srv/shop/app/cache.rb:12", 2], ["script.rb:1", 1]]], ["two\nlines", [["script.rb:2", 1]]]
      ]
      expect(report.strings_retained).to eq [["GET", [["/srv/shop/app/cache.rb:12", 2]]]]
    end
  end

  describe "sites" do
    it "are enumerated with the most bytes allocated first" do
      expect(report.map(&:class_name)).to eq %w[Hash String Set Array]
      expect(report.max_by(&:retained_bytes).location).to eq "/srv/shop/app/cache.rb:12"
      expect(report.sites).to be_frozen
    end

    it "come one by one, too" do
      expect(report.each.size).to eq 4
      seen = []
      expect(report.each { |site| seen << site }).to equal report
      expect(seen).to eq report.sites
    end
  end

  describe "filters" do
    def filters(**options)
      described_class.new(profile, **options)
      profile.filters
    end

    let(:cache) { "/srv/shop/app/cache.rb" }
    let(:rack) { "/usr/lib/ruby/gems/3.4.0/gems/rack-3.1.0/lib/rack/utils.rb" }
    let(:set) { "/usr/lib/ruby/3.4.0/set.rb" }

    it "are not applied unless asked for" do
      expect(filters).to be_empty
      expect(filters(allow_files: nil, ignore_files: [], trace: nil)).to be_empty
    end

    it "allow files by a String (the source of an expression), a Regexp, or an Array of them" do
      expect(filters(allow_files: "rack.*utils")).to eq [[[rack], nil]]
      expect(filters(allow_files: /CACHE/i).last).to eq [[cache], nil]
      expect(filters(allow_files: ["cache", /set\.rb\z/]).last).to eq [[cache, set], nil]
    end

    it "ignore files likewise" do
      expect(filters(ignore_files: "/gems/")).to eq [[[cache, set], nil]]
      expect(filters(ignore_files: [/gems/, "set"], allow_files: //).last).to eq [[[cache], nil]].first
    end

    it "trace classes" do
      expect(filters(trace: String)).to eq [[nil, ["String"]]]
      expect(filters(trace: [String, Hash, "<iseq>"]).last).to eq [nil, ["String", "Hash", "<iseq>"]]
    end

    it "are one filter together" do
      report = described_class.new(profile, allow_files: "cache", trace: [Array])
      expect(profile.filters).to eq [[[cache], ["Array"]]]
      expect(report.total_allocated).to eq 3
    end

    it "trace a class whose `name` says something else" do
      stub_const("Liar", Class.new { def self.name = "Somebody" })
      expect(filters(trace: Liar)).to eq [[nil, ["Liar"]]]
    end

    it "are refused if they are invalid" do
      expect { filters(allow_files: "(") }.to raise_error(ArgumentError, /allow_files must be a String/)
      expect { filters(ignore_files: 42) }.to raise_error(ArgumentError, /ignore_files must be a String/)
      expect { filters(trace: 42) }
        .to raise_error(ArgumentError, "trace must be a class or an Array of classes, not 42")
      expect { filters(trace: Class.new) }.to raise_error(ArgumentError, /without a name/)
    end

    it "can be checked before there is anything to filter" do
      expect(described_class.check_filters(top: 5, trace: [String])).to be_nil
      expect { described_class.check_filters(top: 0) }.to raise_error(ArgumentError, /top must be/)
      expect { described_class.check_filters(trace: 42) }.to raise_error(ArgumentError, /trace must be/)
      expect { described_class.check_filters(tops: 5) }.to raise_error(ArgumentError, /unknown keyword/)
    end

    it "match names that are no text" do
      expect(described_class.new(hostile, ignore_files: "odd").total_allocated).to eq 3
    end
  end

  describe "#to_s" do
    it "shows what is retained within its first five lines, then what is allocated" do
      expect(report.to_s).to match_snapshot("report/leaky")
      expect(report.to_s.lines[4]).to include("10,000", "String", "cache.rb:12 in Cache#fetch")
    end

    it "shows the callers of sites that matter, and each site once" do
      frames = ["/srv/json.rb:9:in JSON.parse", "/srv/a.rb:3:in A#b"] +
        Array.new(6) { |index| "/srv/caller.rb:#{index}:in C##{index}" }
      native = ["(no name):0:in Array#each", "#{ChildRuby::LIB}/memprof.rb:155:in Memprof.report"]
      rows = [[frames + native, 900], [frames.first(2), 100]].map do |stack, bytes|
        FakeProfile.row("/srv/a.rb", 3, "String", method: "A#b", retained: [5, bytes], stack: stack)
      end
      rows << FakeProfile.row("/srv/small.rb", 3, "Hash", retained: [1, 40], stack: frames)
      profile = FakeProfile.new(rows, meta: { "stack" => 8, "sample" => 1000 })
      expect(described_class.new(profile).to_s).to match_snapshot("report/stacks")
    end

    it "says so if nothing stays" do
      row = FakeProfile.row("/srv/a.rb", 3, "String", freed: [1, 40], ages: [0.0, 0])
      expect(described_class.new(FakeProfile.new([row])).to_s).to match_snapshot("report/churn")
    end

    it "says so if nothing was allocated" do
      expect(described_class.new(FakeProfile.new).to_s)
        .to eq "Nothing was allocated.\nruby 3.4.1, 2.31 s, 14 GC runs, every object recorded\n"
    end

    it "does with few facts" do
      meta = { "runtime" => nil, "duration" => nil, "gc_count" => 1, "sample" => nil, "stack" => nil }
      expect(described_class.new(FakeProfile.new([], meta: meta)).to_s)
        .to eq "Nothing was allocated.\n1 GC run, every object recorded\n"
    end

    it "shows as many rows as are asked for, and how many more there are" do
      text = report.to_s(limit: 2)
      expect(text.scan(/in \S+$/).size).to eq 4
      expect(text).to include("1 more site\n").and include("2 more sites\n")
      expect { report.to_s(limit: 0) }
        .to raise_error(ArgumentError, "limit must be a positive Integer, not 0")
    end

    it "fits on a screen unless the report has its own top" do
      rows = Array.new(70) { |index| FakeProfile.row("/srv/a.rb", index + 1, "String", freed: [1, 40]) }
      profile = FakeProfile.new(rows)
      lengths = [50, 60, 5].map { |top| described_class.new(profile, top: top).to_s.scan("a.rb:").size }
      expect(lengths).to eq [20, 60, 5]
    end

    it "is painted if asked for" do
      expect(report.to_s(color: true)).to start_with("\e[1m10,015 objects").and include("\e[36mString")
      expect(report.to_s).not_to include("\e")
    end

    it "stays a table whatever the names contain" do
      text = described_class.new(hostile).to_s
      expect(text).to be_valid_encoding
      expect(text).to match_snapshot("report/hostile")
    end
  end

  describe "what the VM allocates for itself" do
    let(:profile) do
      rows = { "String" => 5, "<callcache>" => 3, "<array>" => 1 }.map do |name, objects|
        FakeProfile.row("/srv/app.rb", 1, name, retained: [objects, objects * 40])
      end
      FakeProfile.new(rows)
    end

    it "counts, and is summed up in a line of text and Markdown" do
      [report.to_s, report.to_markdown].each do |text|
        expect(text).to include("9 objects (360 B) retained of 9 objects (360 B) allocated")
        expect(text).to match(/^Excluded: 3 VM-internal objects \(120 B\), 3 of them \(120 B\) retained$/)
        expect(text).to include("String").and include("<array>")
        expect(text).not_to include("callcache")
      end
      expect(report.map(&:class_name)).to include("<callcache>")
    end

    it "is listed, or left out of totals, too, if so asked" do
      expect(described_class.new(profile, internal: true).to_s).to include("<callcache>")
      expect(described_class.new(profile, internal: true).to_s).not_to include("excluded:")
      expect(described_class.new(profile, internal: false).to_s)
        .to start_with("5 objects (200 B) retained of 5 objects (200 B) allocated")
    end

    it "may be all that is retained" do
      rows = [FakeProfile.row("/srv/app.rb", 1, "<callcache>", retained: [3, 120])]
      expect(described_class.new(FakeProfile.new(rows)).to_s).to include("\nNothing else is retained.\n")
    end
  end

  describe "#to_markdown" do
    it "is compact" do
      expect(report.to_markdown).to match_snapshot("report/leaky.md")
    end

    it "stays a table whatever the names contain" do
      expect(described_class.new(hostile).to_markdown).to match_snapshot("report/hostile.md")
    end

    it "says so if nothing stays, or nothing was allocated" do
      row = FakeProfile.row("/srv/a.rb", 3, "String", freed: [1, 40])
      expect(described_class.new(FakeProfile.new([row])).to_markdown).to include("\nNothing is retained.\n")
      expect(described_class.new(FakeProfile.new).to_markdown).to start_with("**Nothing was allocated.**")
    end

    it "takes a limit" do
      expect(report.to_markdown(limit: 1)).to include("\n2 more sites  \n")
    end
  end

  describe "#to_h and #to_json" do
    it "carry everything with exact numbers" do
      expect("#{JSON.pretty_generate(report)}\n").to match_snapshot("report/leaky.json")
      expect(JSON.parse(report.to_json)).to eq JSON.parse(JSON.generate(report.to_h))
    end

    it "are valid UTF-8 whatever the names and strings contain" do
      json = described_class.new(hostile).to_json
      expect([json.encoding, json.valid_encoding?]).to eq [Encoding::UTF_8, true]
      site = JSON.parse(json)["sites"].find { |row| row["line"] == 1 }
      expect(site).to include("file" => "/srv/odd\n/a;b\\xFF.rb", "class" => "Odd\n\e[2JClass;`|",
        "method" => "x\0y;\\xC3")
      expect(JSON.parse(json)["strings"]["allocated"].first["value"]).to eq "se;\\xFF\n"
      expect(JSON.parse(json)["meta"]["command"]).to eq "ruby \\xFF\n"
    end

    it "nest in other documents" do
      document = JSON.parse(JSON.generate("report" => report))
      expect(document.dig("report", "totals", "retained", "objects")).to eq 10_015
    end

    it "load json only when it is needed" do
      code = <<~RUBY
        module Memprof; end
        require #{File.join(ChildRuby::LIB, "memprof/report").inspect}
        print $LOADED_FEATURES.grep(%r{/(json|erb|optparse|objspace)(\\.|/)}).size
      RUBY
      expect(run_ruby(code, ruby_args: ["--disable-gems"]).stdout).to eq "0"
    end
  end

  describe "#write" do
    around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

    it "writes every format to a file that only its owner can read" do
      described_class::FORMATS.each { |format| report.write("report.#{format}", format: format) }
      expect(File.read("report.text")).to eq report.to_s
      expect(File.read("report.markdown")).to eq report.to_markdown
      expect(JSON.parse(File.read("report.json"))).to eq JSON.parse(report.to_json)
      expect(File.read("report.collapsed")).to eq "collapsed of allocated_bytes\n"
      expect(File.read("report.pprof")).to eq "pprof of allocated_bytes\n"
      expect(Dir.children(".").map { |path| File.stat(path).mode & 0o777 }.uniq).to eq [0o600]
    end

    it "writes text to an io, by default to standard output" do
      io = StringIO.new
      expect(report.write(io)).to be_nil
      expect(io.string).to eq report.to_s
      expect { report.write }.to output(report.to_s).to_stdout
    end

    it "takes names of formats and of values as words" do
      io = StringIO.new
      report.write(io, format: "speedscope", value: "retained_objects")
      expect(io.string).to eq "speedscope of retained_objects\n"
    end

    it "lists what exists, and writes nothing, if there is no such format or value" do
      expect { report.write("report", format: :xml) }.to raise_error(ArgumentError,
        "unknown format :xml; expected one of: text, json, markdown, collapsed, speedscope, firefox, pprof")
      expect { report.write("report", format: :collapsed, value: :time) }.to raise_error(ArgumentError,
        /\Aunknown value :time; expected one of: allocated_bytes, .*, retained_objects\z/)
      expect(Dir.children(".")).to be_empty
    end

    it "colours for a terminal and on demand" do
      terminal = StringIO.new
      allow(terminal).to receive(:tty?).and_return(true)
      stub_const("ENV", ENV.to_h.merge("TERM" => "xterm", "NO_COLOR" => ""))
      report.write(terminal)
      expect(terminal.string).to eq report.to_s(color: true)
      report.write("report", color: true, limit: 1)
      expect(File.read("report")).to eq report.to_s(color: true, limit: 1)
    end

    it "says what is wrong with the place" do
      expect { report.write("missing/report") }
        .to raise_error(Memprof::Error, "cannot write missing/report: no such directory: missing")
    end
  end

  describe "#inspect" do
    it "is short, also for pp" do
      expect(report.inspect)
        .to eq "#<Memprof::Report 510,905 objects (81.4 MiB) allocated, 10,015 (1.2 MiB) retained>"
      expect(PP.pp(report, +"")).to eq "#{report.inspect}\n"
    end
  end
end
