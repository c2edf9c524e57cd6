# frozen_string_literal: true

require "memprof"
require "memprof/web"
require "rack"
require "tmpdir"

RSpec.describe "recordings of malloc in Memprof::Web" do
  include WebBrowser

  before { skip "malloc is recorded on Linux" unless RUBY_PLATFORM.include?("linux") }

  around { |example| Dir.mktmpdir { |directory| Dir.chdir(directory) { example.run } } }

  program = <<~RUBY
    require "memprof/malloc"
    ("a" * 2).clear
    def parse(size) = "<b>" * size
    def import = Array.new(20) { parse(40_000) }
    Memprof::Malloc.record("app.malloc") do
      sleep(0.25)
      rows = import
      kept = parse(100_000)
      rows.each(&:clear)
      sleep(0.25)
      kept.size
    end
  RUBY

  # A line may have a table for the cache of a method besides its own blocks.
  def about(bytes) = be_between(bytes, bytes + 10_000)

  def json(path) = ask(app, path.sub(/(\?|\z)/, '.json\1')).json

  let(:app) { web_app.tap { |app| app.heaps.records.add("app.malloc", :malloc) } }

  # Recorded once for all examples, by a program in a directory of its own.
  recorded_in = recording = nil
  before do
    if recording.nil?
      recorded_in = Dir.mktmpdir
      File.write(recorded_file, program)
      result = run_ruby("load #{recorded_file.inspect}")
      raise result.stderr unless result.status.success?

      recording = File.binread("app.malloc")
    end
    File.binwrite("app.malloc", recording)
  end

  after(:context) { FileUtils.rm_rf(recorded_in) if recorded_in }

  define_method(:recorded_file) { File.join(recorded_in, "app.rb") }
  define_method(:whole) { recording }

  def line(number) = "#{recorded_file}:#{number}"

  it "shows the peak, what is live at the end, lines and sizes" do
    expect(Memprof::FileKind.of("app.malloc")).to eq(:malloc)
    data = json("/malloc/1")
    summary = Memprof::Malloc::Recording.new("app.malloc").to_h
    same = %i[total peak_ms sizes command]
    expect(data.slice(*same)).to eq(summary.slice(*same))
    expect(data[:rows].first).to include(location: line(3), peak_bytes: about(2_700_000))
    leaks = json("/malloc/1?sort=leaked")[:rows]
    expect(leaks.first).to include(location: line(3), leaked_bytes: about(300_000))
    expect(json("/malloc/1?location=app.rb:4")[:rows].map { |row| row[:location] }).to eq([line(4)])
    page = ask(app, "/malloc/1?sort=allocated")
    expect(page.body).to include("Peak: ", "Memory over time", "Sizes")
    expect(page.links).to include(a_string_matching(%r{\A/malloc/1/line\?at=.*app\.rb%3A3&value=allocated\z}))
    expect(ask(app, "/malloc").location).to eq("/malloc/1")
  end

  it "draws consumption, RSS and calls over time, and shows a part of it" do
    timeline = json("/malloc/1")[:timeline]
    parts = timeline[:parts]
    expect(parts.size).to eq(120)
    total = json("/malloc/1")[:total]
    expect(parts.map { |part| part[:live] }.max).to eq(total[:peak_bytes])
    expect(parts.map { |part| part[:rss] }.max).to be > 5_000_000
    expect(parts.sum { |part| part[:calls] }).to be_within(120).of(total[:allocations])
    expect(ask(app, "/malloc/1").body).to match(/<polyline points="[\d., ]+" class="rss">/)

    data = json("/malloc/1?from=#{timeline[:seconds]}")
    expect(data[:range]).to eq(from: timeline[:seconds], to: nil)
    expect(data[:total][:allocations]).to be < total[:allocations]
    expect(data[:total]).to include(leaked_bytes: total[:leaked_bytes])
    expect(data[:timeline]).to eq(timeline)
    page = ask(app, "/malloc/1?from=0.1&to=0.2")
    expect(page.body).to include('class="outside"')
    expect(page.links).to include(a_string_matching(%r{/malloc/1/flame\?value=peak&from=0.1&to=0.2}))
  end

  it "draws the stacks as a flame graph of any value" do
    total = json("/malloc/1")[:total]
    %w[peak leaked allocated].each do |value|
      flame = json("/malloc/1/flame?value=#{value}")
      expect(flame[:frames].first[3]).to eq(total[:"#{value}_bytes"])
      own = flame[:frames].sum { |frame| frame[2] }
      expect(own).to eq(total[:"#{value}_bytes"])
    end
    flame = json("/malloc/1/flame")
    parse = flame[:frames].find { |frame| flame[:names][frame[1]].start_with?("parse (") }
    expect(parse[2]).to about(2_400_000)
    expect(flame[:names][flame[:frames][parse[0]][1]]).to start_with("block in import (")
    page = ask(app, "/malloc/1/flame?value=leaked").body
    expect(page).to include('data-json="/malloc/1/flame.json?value=leaked"', "parse (")
  end

  it "shows the VM's frames if asked, and compares with another recording" do
    result = run_ruby(<<~RUBY)
      require "memprof/malloc"
      def kept = $kept = Array.new(50) { "a" * 40_000 }
      Memprof::Malloc.record("native.malloc", native: true) { kept }
    RUBY
    raise result.stderr unless result.status.success?

    app.heaps.records.add("native.malloc", :malloc)
    own, all = ["", "?vm=yes"].map { |query| json("/malloc/2/flame#{query}") }
    expect(own[:names].join(" ")).to include("kept (").and match(/\A(?!.*(?:libruby|_start \())/)
    expect([own, all].map { |flame| [flame[:vm], flame[:frames].first[3]] })
      .to eq([[false, all[:frames].first[3]], [true, all[:frames].first[3]]])
    expect(all[:names].size).to be > own[:names].size
    expect(ask(app, "/malloc/2/flame").links).to include("/malloc/2/flame?vm=yes", "/malloc/2/flame?before=1")
    expect(ask(app, "/malloc/1/flame").body).not_to include("native frames")
    both = json("/malloc/2/flame?before=1")
    expect(both[:frames].first.last(2)).to eq([json("/malloc/1/flame"), own].map { |one| one[:frames][0][3] })
  end

  it "shows who called a line, and its source" do
    path = "/malloc/1/line?at=#{line(3)}"
    data = json(path)
    names = data[:callers].map { |row| row[:method] }
    expect(names.first).to eq("parse")
    expect(names).to include("block in import", "import")
    expect(data[:callers].first).to include(level: 0, bytes: about(2_700_000))
    expect(data[:source]).to include({ line: 3, text: 'def parse(size) = "<b>" * size' })
    page = ask(app, path).body
    expect(page).to include("&lt;b&gt;", "block in import (", "<details open")
    leaked = json("#{path}&value=leaked")[:callers]
    expect(leaked.map { |row| row[:method] }).not_to include("import")
    other = json("/malloc/1/line?at=#{line(4)}")[:callers]
    expect(other.map { |row| row[:location] }).not_to include(line(3))
  end

  it "reads a recording again when it has grown, and says that it still runs" do
    File.binwrite("app.malloc", whole.byteslice(0, whole.bytesize - 20))
    part = json("/malloc/1")
    expect(part[:complete]).to be(false)
    expect(ask(app, "/malloc/1").body).to include("The recording still runs, or its process was killed.")
    File.binwrite("app.malloc", whole)
    expect(json("/malloc/1")[:complete]).to be(true)
    expect(ask(app, "/malloc/1").body).not_to include("The recording still runs")
  end

  it "calls numbers estimates if they come from samples" do
    run_ruby(<<~RUBY)
      require "memprof/malloc"
      Memprof::Malloc.record("app.malloc", sample: "16 KiB") { $rows = Array.new(200) { "x" * 10_000 } }
    RUBY
    note = "All numbers are estimates: they come from samples, one every 16.0 KiB on average."
    line = json("/malloc/1")[:rows].first[:location]
    ["/malloc/1", "/malloc/1/flame", "/malloc/1/line?at=#{line}"].each do |path|
      expect(ask(app, path).body).to include(note), path
      expect(json(path)[:sample]).to eq(16_384)
    end
    File.binwrite("app.malloc", whole)
    expect(ask(app, "/malloc/1/flame").body).not_to include("estimates")
  end

  it "says what is wrong with a question" do
    {
      "/malloc/1?sort=size" => 400, "/malloc/1?from=x" => 400, "/malloc/1?from=2&to=1" => 400,
      "/malloc/1?page=9" => 404, "/malloc/1/flame?value=live" => 400, "/malloc/1/line" => 400,
      "/malloc/1/line?at=app.rb:999" => 404, "/malloc/2" => 404, "/tracked/1" => 404
    }.each { |path, status| expect(ask(app, path).status).to eq(status), path }
    File.delete("app.malloc")
    gone = ask(app, "/malloc/1")
    expect([gone.status, gone.body]).to match([500, include("No such file or directory")])
  end
end
