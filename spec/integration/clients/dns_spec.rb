# frozen_string_literal: true

RSpec.describe "Names that are looked up" do
  let(:result) do
    client_program(<<~RUBY)
      require "socket"
      calls = ->(**options, &block) { traced(tracers: :dns, **options, &block)["dns"].dig("getaddrinfo", "calls") || 0 }
      look_up = ->(times) { times.times { Addrinfo.getaddrinfo("localhost", 80) } }
      thread = ->(times) { Thread.new { calls.call { look_up.call(times) } } }
      alone = [10, 30].map { |times| thread.call(times).value }
      together = nil
      all = calls.call(scope: :process) { together = [10, 30].map(&thread).map(&:value) }
      emit(alone: alone, together: together, all: all, idle: calls.call { Thread.new { look_up.call(5) }.join })
    RUBY
  end

  before do
    skip "calls can't be interposed here" if result["all"].zero? && !Memprof::Tracers.native.include?(:dns)
  end

  it "are counted for the thread that asks, wherever Ruby does it" do
    # Each look-up is one call, or a fixed number of them.
    times = result["alone"].first / 10
    expect(times).to be >= 1
    expect(result).to include("alone" => [10 * times, 30 * times], "idle" => 0)
  end

  # Ruby 3.3 and later ask again if the thread is interrupted meanwhile, as by the end of its time slice. What
  # was asked first ends on its own, perhaps when its thread no longer counts.
  it "are counted for each of the threads that ask together" do
    few, many = result["together"]
    expect(few).to be >= 10
    expect(many).to be >= 30
    expect(result["all"]).to be >= few + many
  end
end
