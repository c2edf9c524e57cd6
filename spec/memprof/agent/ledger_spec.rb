# frozen_string_literal: true

require "memprof"
require "memprof/agent/ledger"

RSpec.describe "The ledger of the agent" do
  let(:clock) { Struct.new(:now).new(1000.0) }

  it "is read as often as its duration allows" do
    ledger = Memprof::Agent::Ledger.new(clock: clock, share: 0.1)
    allow(Memprof).to receive(:memory) do
      clock.now += 2
      :memory
    end
    expect(ledger.read).to eq(:memory)
    clock.now += 19
    expect(ledger.read).to be_nil
    expect(ledger.measure).to eq(:memory)
    expect(ledger.read).to eq(:memory)
  end

  it "is unknown where memory can't be measured" do
    allow(Memprof).to receive(:memory).and_raise(Memprof::Error, "no /proc")
    expect(Memprof::Agent::Ledger.new.read).to be_nil
  end
end
