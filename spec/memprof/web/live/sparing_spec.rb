# frozen_string_literal: true

require "memprof/web"

RSpec.describe Memprof::Web::Live::Sparing do
  let(:clock) { Struct.new(:now).new(100.0) }
  let(:used) { [0.0] }
  let(:sparing) { described_class.new(least: 2.0, clock: clock, cpu: -> { used.first }) }

  def ask(cost)
    sparing.ask { used[0] += cost }
  end

  it "asks what is cheap after a while" do
    expect([ask(0.001), ask(0.001)]).to match([be_positive, nil])
    clock.now += 1.9
    expect(ask(0.001)).to be_nil
    clock.now += 0.2
    expect(ask(0.001)).to be_positive
  end

  it "asks what is expensive when a hundred times its cost has passed, also if it failed" do
    expect { sparing.ask { used[0] += 0.5 and raise(KeyError) } }.to raise_error(KeyError)
    clock.now += 49.9
    expect(ask(0)).to be_nil
    clock.now += 0.2
    expect(ask(0.5)).to be_positive
    sparing.renew
    expect(ask(0.5)).to be_positive
  end
end
