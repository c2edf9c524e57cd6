# frozen_string_literal: true

require "memprof/agent/exposition"

RSpec.describe Memprof::Agent::Exposition do
  let(:family) { described_class::Family }
  let(:counter) do
    family.new("gc_seconds", :counter, "seconds", "GC \\ \n\"time\".",
      [["", { "kind" => "a\"b\\c\nd" }, 1.5]])
  end

  it "writes Prometheus's text format" do
    expect(described_class.text([counter], :prometheus)).to eq(<<~'TEXT')
      # HELP gc_seconds_total GC \\ \n"time".
      # TYPE gc_seconds_total counter
      gc_seconds_total{kind="a\"b\\c\nd"} 1.5
    TEXT
  end

  it "writes OpenMetrics" do
    expect(described_class.text([counter], :openmetrics)).to eq(<<~'TEXT')
      # TYPE gc_seconds counter
      # UNIT gc_seconds seconds
      # HELP gc_seconds GC \\ \n\"time\".
      gc_seconds_total{kind="a\"b\\c\nd"} 1.5
      # EOF
    TEXT
  end

  it "has no unit that is not in the name, and writes numbers that are none" do
    odd = family.new("leaks", :gauge, "bytes", "Leaks.", [["", {}, 0], ["", { "a" => "1" }, Float::NAN],
      ["", { "a" => "2" }, Float::INFINITY], ["", { "a" => "3" }, -Float::INFINITY]])
    expect(described_class.text([odd], :openmetrics)).to eq(<<~TEXT)
      # TYPE leaks gauge
      # HELP leaks Leaks.
      leaks 0
      leaks{a="1"} NaN
      leaks{a="2"} +Inf
      leaks{a="3"} -Inf
      # EOF
    TEXT
  end

  {
    nil => :prometheus, "" => :prometheus, "*/*" => :prometheus, "text/html" => :prometheus,
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1" => :prometheus,
    "application/openmetrics-text; version=1.0.0; charset=utf-8,text/plain;q=0.5" => :openmetrics,
    "application/openmetrics-text;version=0.0.1,text/plain;version=0.0.4" => :prometheus,
    "application/openmetrics-text;q=0.2,text/plain;q=0.9" => :prometheus,
    "application/openmetrics-text;q=0" => :prometheus,
    "APPLICATION/OpenMetrics-Text" => :openmetrics
  }.each do |header, format|
    it("prefers #{format} if #{header.inspect} is accepted") {
      expect(described_class.accepted(header)).to eq(format)
    }
  end
end
