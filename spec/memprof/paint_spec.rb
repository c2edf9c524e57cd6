# frozen_string_literal: true

require "memprof/paint"
require "stringio"

RSpec.describe Memprof::Paint do
  let(:terminal) { instance_double(IO, tty?: true) }

  around do |example|
    kept = ENV.to_h
    ENV["TERM"] = "xterm"
    ENV.delete("NO_COLOR")
    example.run
  ensure
    ENV.replace(kept)
  end

  it "paints if it is switched on" do
    expect(described_class.new(true).call("text", :red)).to eq "\e[31mtext\e[0m"
    expect(described_class.new(true).call("text", nil)).to eq "text"
    expect(described_class.new.call("text", :red)).to eq "text"
  end

  it "is wanted on a terminal and nowhere else" do
    expect(described_class.wanted?(terminal)).to be true
    expect(described_class.wanted?(StringIO.new)).to be false
    expect(described_class.wanted?("report.txt")).to be false
    expect(described_class.wanted?(IO.pipe.each(&:close).first)).to be false
  end

  it "honours NO_COLOR if it says anything" do
    ENV["NO_COLOR"] = ""
    expect(described_class.wanted?(terminal)).to be true
    ENV["NO_COLOR"] = "1"
    expect(described_class.wanted?(terminal)).to be false
  end

  it "leaves a dumb terminal alone" do
    ENV["TERM"] = "dumb"
    expect(described_class.wanted?(terminal)).to be false
  end

  it "follows an explicit choice" do
    ENV["NO_COLOR"] = "1"
    expect(described_class.wanted?(StringIO.new, true)).to be true
    expect(described_class.wanted?(terminal, false)).to be false
    expect(described_class.wanted?(terminal, nil)).to be false
  end
end
