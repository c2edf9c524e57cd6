# frozen_string_literal: true

require "memprof/autorun/settings"
require "memprof/cli"
require "tmpdir"

RSpec.describe Memprof::CLI::Reports do
  around do |example|
    Dir.mktmpdir { |directory| Dir.mkdir(@directory = File.join(directory, "run")) && example.run }
  end

  # That of a run whose reports are named after their processes.
  def settings = instance_double(Memprof::Autorun::Settings, output: "report.%p")

  def show
    said = StringIO.new
    terminal = Memprof::CLI::Terminal.new(out: StringIO.new, err: said)
    described_class.new(@directory, terminal, shown: false).show(1, settings)
    said.string
  end

  it "finds a process again that continues under another id while notices are read" do
    File.write(File.join(@directory, "12"), "label=app\nended=true\nallocated=5\nreport=/tmp/app.txt")
    # The old notice was listed, and is gone when it is read.
    listed = [%w[11], %w[12]]
    allow(Dir).to receive(:children).with(@directory) { listed.size > 1 ? listed.shift : listed.first }

    expect(show).to match(/\b12  app\b.*app\.txt/)
  end

  it "says that there is nothing if the directory goes meanwhile" do
    allow(Dir).to receive(:children).with(@directory) do
      Dir.rmdir(@directory)
      %w[11]
    end

    expect(show).to match(/\Amemprof: /)
  end
end
