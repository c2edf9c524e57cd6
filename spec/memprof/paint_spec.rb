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

  it "believes the one of isatty and tty? that the io defines itself" do
    [[:isatty, true], [:tty?, true], [:isatty, false], [:tty?, false]].each do |name, answer|
      plain = Object.new
      string = StringIO.new
      [plain, string].each { |io| io.define_singleton_method(name) { answer } }
      expect([plain, string].map { |io| described_class.wanted?(io) }).to eq([answer] * 2), name.to_s
    end
    other_way = instance_double(IO, tty?: true)
    other_way.define_singleton_method(:isatty) { false }
    expect(described_class.wanted?(other_way)).to be false
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
