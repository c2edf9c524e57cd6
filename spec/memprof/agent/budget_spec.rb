# frozen_string_literal: true

require "memprof/agent/budget"

RSpec.describe "The budget of the agent" do
  let(:budget) { Memprof::Agent::Budget.new(0.01) }

  # Whether it is exceeded after each interval of a second with these CPU times.
  def exceeded(*times, duration: 1.0)
    interval = Struct.new(:cost, :duration)
    times.map { |time| budget.exceeded?(interval.new({ cpu: time }, duration)) }
  end

  it "is exceeded after three intervals in succession" do
    expect(exceeded(0.02, 0.02, 0.005, 0.02, 0.02, 0.02)).to eq([false, false, false, false, false, true])
    expect(budget.to_s).to eq("2.0 %, 2.0 %, 2.0 % of a CPU in the last 3 intervals")
  end

  it "is not exceeded by the budget itself, nor in intervals without a duration" do
    expect(exceeded(0.01, 0.01, 0.01)).to all(be(false))
    expect(exceeded(1, 1, 1, duration: 0.0)).to all(be(false))
  end
end
