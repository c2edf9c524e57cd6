# frozen_string_literal: true

require "memprof/agent/schedule"

RSpec.describe "The schedule of the agent" do
  let(:clock) { Struct.new(:now).new(100.0) }
  let(:schedule) { Memprof::Agent::Schedule.new({ interval: 60, check: 5 }, clock: clock) }

  # What is due at seconds from the start.
  def due(*seconds)
    schedule
    seconds.map do |second|
      clock.now = 100.0 + second
      schedule.due
    end
  end

  it "has each task due once a period" do
    expect(due(4.9, 5, 5.1, 10, 60)).to eq([[], [:check], [], [:check], %i[interval check]])
  end

  it "says how long to wait" do
    schedule
    expect(schedule.wait).to eq(5.0)
    clock.now = 107.0
    expect(schedule.wait).to eq(0)
    schedule.due
    expect(schedule.wait).to eq(3.0)
  end

  it "stays on its beat if it comes a little late" do
    expect(due(6, 9.9, 10.1, 15)).to eq([[:check], [], [:check], [:check]])
  end

  it "has a task due once, however long nothing happened" do
    expect(due(86_400, 86_401, 86_405, 86_460)).to eq([%i[interval check], [], [:check], %i[interval check]])
  end

  it "does not run wild if the clock goes back" do
    expect(due(5, -50, 9.9, 10)).to eq([[:check], [], [], [:check]])
  end

  it "begins a period anew" do
    schedule
    clock.now = 130.0
    schedule.begin(:interval)
    clock.now = 189.0
    expect(schedule.due).to eq([:check])
    clock.now = 190.0
    expect(schedule.due).to include(:interval)
  end
end
