# frozen_string_literal: true

require "stringio"
require "tempfile"

begin
  require "memory_profiler"
rescue LoadError
  nil # what is compared with it is left out
end

# pretty_print: the shape that memory_profiler prints.
RSpec.describe Memprof::Compat::MemoryProfilerReport do
  let(:report) { Memprof::Report.new(FakeProfile.leaky) }

  def printed(report = self.report, **options)
    io = StringIO.new
    expect(report.pretty_print(io, **options)).to be_nil
    io.string
  end

  # memory_profiler's own printer, fed with our report's numbers.
  def peer(report)
    Class.new(MemoryProfiler::Results) do
      (Memprof::Report::Groups.public_instance_methods + %i[
        strings_allocated strings_retained total_allocated total_allocated_memsize total_retained
        total_retained_memsize
      ]).each { |name| define_method(name) { report.public_send(name) } }
    end.new
  end

  def printed_by_peer(report = self.report, **options)
    StringIO.new.tap { |io| peer(report).pretty_print(io, **options) }.string
  end

  # Releases of memory_profiler paint the same places in different colours.
  def without_palette(text)
    text.gsub(/\e\[3\dm/, "\e[COLOR")
  end

  it "prints memory_profiler's sections in their order" do
    expect(printed).to match_snapshot("report/classic")
  end

  it "scales bytes and shortens paths" do
    expect(printed(scale_bytes: true, normalize_paths: true)).to match_snapshot("report/classic_scaled")
  end

  describe "beside memory_profiler", if: defined?(MemoryProfiler) do
    [
      {}, { scale_bytes: true }, { normalize_paths: true }, { color_output: true }, { allocated_strings: 1 },
      { retained_strings: 0 }, { allocated_strings: 0, retained_strings: 1 }, { detailed_report: nil },
      { scale_bytes: true, normalize_paths: true, color_output: true, top: 3, no_such_option: true }
    ].each do |options|
      it "prints the same with #{options}" do
        expect(without_palette(printed(**options))).to eq without_palette(printed_by_peer(**options))
      end
    end

    it "prints the same of nothing" do
      empty = Memprof::Report.new(FakeProfile.new)
      expect(printed(empty, scale_bytes: true)).to eq printed_by_peer(empty, scale_bytes: true)
      expect(printed(empty).scan("NO DATA").size).to eq 16
    end
  end

  it "paints counts, rules and strings as memory_profiler 1.1 does" do
    expect(printed(color_output: true))
      .to include("\e[36m#{"-" * 35}\e[0m\n\e[34m  84000000\e[0m  rack-3.1.0\n")
      .and include("\e[34m         3\e[0m  \e[32m\"GET\"\e[0m\n")
  end

  it "prints only the totals if details are not wanted" do
    expect(printed(detailed_report: false)).to eq <<~TEXT
      Total allocated: 85316200 bytes (510905 objects)
      Total retained:  1282136 bytes (10015 objects)
    TEXT
  end

  it "adds sections of its own behind that shape, and only if asked for" do
    text = printed(methods: true, ages: true)
    expect(text).to start_with(printed)
    expect(text.delete_prefix(printed)).to match_snapshot("report/classic_additions")
    expect(printed(Memprof::Report.new(FakeProfile.new), ages: true))
      .to end_with("\nfreed objects by site\n#{"-" * 35}\nNO DATA\n")
  end

  it "keeps its lines whatever the names contain" do
    row = FakeProfile.row("/srv/odd\n\xFF.rb", 1, "Odd\n\e[2J", retained: [1, 40])
    text = printed(Memprof::Report.new(FakeProfile.new([row])))
    expect(text).to be_valid_encoding
      .and include("         1  /srv/odd\\n\\xFF.rb:1\n", "        40  Odd\\n\\e[2J\n")
  end

  it "prints to standard output by default, with colours only on a terminal" do
    expect { report.pretty_print }.to output(printed).to_stdout
  end

  describe "on a terminal" do
    let(:terminal) { StringIO.new.tap { |io| allow(io).to receive(:tty?).and_return(true) } }

    it "colours, unless NO_COLOR is set or color_output says no" do
      stub_const("ENV", { "TERM" => "xterm" })
      report.pretty_print(terminal)
      expect(terminal.string).to eq printed(color_output: true)
    end

    it "leaves colours out if NO_COLOR is set" do
      stub_const("ENV", { "TERM" => "xterm", "NO_COLOR" => "1" })
      report.pretty_print(terminal)
      expect(terminal.string).to eq printed
    end

    it "leaves colours out if color_output says no" do
      stub_const("ENV", { "TERM" => "xterm" })
      report.pretty_print(terminal, color_output: false)
      expect(terminal.string).to eq printed
    end
  end

  it "prints to a file atomically" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "report.txt")
      expect { report.pretty_print(to_file: path) }.not_to output.to_stdout
      expect(File.read(path)).to eq printed
      expect { report.pretty_print(to_file: File.join(directory, "missing/report.txt")) }
        .to raise_error(Memprof::Error, /no such directory:/)
    end
  end

  it "leaves a file that it was given open" do
    Tempfile.create("report") do |file|
      report.pretty_print(file)
      expect([file.closed?, File.read(file.path)]).to eq [false, printed]
    end
  end

  it "raises an error for a closed pipe" do
    reader, writer = IO.pipe
    reader.close
    expect { report.pretty_print(writer) }.to raise_error(Memprof::Error, /: Broken pipe\z/)
  end
end
