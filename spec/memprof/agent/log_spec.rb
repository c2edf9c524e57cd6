# frozen_string_literal: true

require "logger"
require "memprof"
require "memprof/agent/log"
require "stringio"

RSpec.describe "The log of the agent" do
  def log(logger) = Memprof::Agent::Log.new(logger)

  it "writes to a logger, on one line" do
    output = StringIO.new
    log(Logger.new(output)).warn("a\nb\e[2J")
    expect(output.string).to match(/\AW, .* WARN -- : memprof agent: a\\nb\\e\[2J\n\z/)
  end

  it "writes to the logger of Rails once there is one, before that to standard error" do
    output = StringIO.new
    stub_const("Rails", Struct.new(:logger).new(nil))
    auto = log(:auto)
    expect(auto).not_to be_settled
    expect { auto.info("early") }.to output("memprof: agent: early\n").to_stderr_from_any_process
    Rails.logger = Logger.new(output)
    expect(auto).to be_settled
    auto.info("late")
    expect(output.string).to include("INFO -- : memprof agent: late")
    expect { log(:stderr).info("here") }.to output("memprof: agent: here\n").to_stderr_from_any_process
  end

  it "may be silent" do
    expect { log(nil).warn("anything") }.not_to output.to_stderr_from_any_process
  end

  it "survives a logger that fails" do
    failing = Logger.new(nil)
    def failing.warn(*) = raise("disk full")
    expect { log(failing).warn("anything") }.not_to raise_error
  end

  it "says some things once" do
    output = StringIO.new
    once = log(Logger.new(output))
    2.times { once.warn_once(:key, "first") }
    once.warn_once(:other, "second")
    expect(output.string.scan(/first|second/)).to eq(%w[first second])
  end
end
