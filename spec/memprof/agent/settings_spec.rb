# frozen_string_literal: true

require "logger"
require "memprof"
require "memprof/agent/settings"

RSpec.describe "The settings of the agent" do
  let(:settings) { Memprof::Agent::Settings }

  def problems(text) = settings.new({}, env: { "MEMPROF_AGENT" => text }).problems

  it "have their defaults" do
    found = settings.new({}, env: {})
    expect(found.to_h).to include(interval: 60, intervals: 60, budget: 0.01, limit: nil, dump: :auto)
    expect(found.to_h).to be_frozen
    expect(found.problems).to eq([])
  end

  it "pass their own checks with their defaults" do
    settings::TABLE.each_value do |setting|
      expect(setting.name => setting.read.call(setting.default)).to eq(setting.name => setting.default)
    end
  end

  it "are read from Ruby and from text alike" do
    given = { interval: 30, limit: "90%", dump: false, logger: :stderr, directory: "/tmp/x" }
    text = "interval=30, limit=90%,dump=false,logger=stderr,directory=/tmp/x"
    from_text = settings.new({}, env: { "MEMPROF_AGENT" => text })
    expect(from_text.problems).to eq([])
    expect(from_text.to_h).to eq(settings.new(given, env: {}).to_h)
    expect(from_text[:limit]).to eq(Rational(9, 10))
  end

  it "take a size, a share, or nothing as limit" do
    limits = ["1GiB", "100%", "12.5 %", 1000, "none", nil, false].map do |limit|
      settings.new({ limit: limit }, env: {})[:limit]
    end
    expect(limits).to eq([1024**3, 1r, 1/8r, 1000, nil, nil, nil])
  end

  it "of MEMPROF_AGENT win" do
    found = settings.new({ interval: 30, budget: 0.5 }, env: { "MEMPROF_AGENT" => "on,interval=10" })
    expect(found.to_h).to include(interval: 10, budget: 0.5)
  end

  {
    { intervall: 3 } => 'unknown setting "intervall" (did you mean interval?)',
    { interval: 0 } => "interval must be seconds, 0.1 to 86400 (got 0)",
    { interval: "soon" } => 'interval must be seconds, 0.1 to 86400 (got "soon")',
    { interval: Float::NAN } => "interval must be seconds, 0.1 to 86400 (got NaN)",
    { intervals: 2.5 } => "intervals must be a whole number, 1 to 10000 (got 2.5)",
    { limit: "101%" } => 'limit must be a share such as "90%", a size such as "1GiB", or none (got "101%")',
    { limit: 0 } => 'limit must be a share such as "90%", a size such as "1GiB", or none (got 0)',
    { dump: :maybe } => "dump must be auto, true or false (got :maybe)",
    { logger: Object } => "logger must be a logger, auto, stderr or none (got Object)",
    { on_limit: 3 } => "on_limit must be callable, or nil (got 3)",
    { service: " " } => 'service must be a text (got " ")',
    { directory: "a\0b" } => 'directory must be a path (got "a\u0000b")'
  }.each do |given, message|
    it "refuse #{given}" do
      expect { settings.new(given, env: {}) }.to raise_error(ArgumentError, message)
    end
  end

  it "name all where no name is near" do
    message = /\Aunknown setting "zork"; expected one of: interval, /
    expect { settings.new({ zork: 1 }, env: {}) }.to raise_error(ArgumentError, message)
  end

  it "of MEMPROF_AGENT with a mistake become problems, and the defaults apply" do
    expect(problems("interval=x,foo,on_limit=3,zone=1")).to match([
      'MEMPROF_AGENT: interval must be seconds, 0.1 to 86400 (got "x")',
      'MEMPROF_AGENT: "foo" is neither on, off, nor name=value',
      "MEMPROF_AGENT: on_limit can be set in Ruby only",
      /\AMEMPROF_AGENT: unknown setting "zone"/
    ])
    expect(settings.new({}, env: { "MEMPROF_AGENT" => "interval=x" })[:interval]).to eq(60)
    expect(problems("service=a\e[2Jb,x\e=1").join).not_to include("\e")
  end

  it "are in the documentation, in the same order" do
    text = File.read(File.expand_path("../../../docs/agent.md", __dir__))
    rows = settings::TABLE.each_value.map do |setting|
      default = setting.default.nil? ? "" : "`#{setting.default}`"
      "`#{setting.name}` | #{default} | #{setting.must} | #{setting.sentence}\n"
    end
    expect(text).to include(rows.join)
  end

  it "take a logger" do
    logger = Logger.new(nil)
    expect(settings.new({ logger: logger }, env: {})[:logger]).to equal(logger)
  end
end
