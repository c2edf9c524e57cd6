# frozen_string_literal: true

RSpec.describe "Names that are looked up" do
  it "are counted for the thread that asks, wherever Ruby does it" do
    result = client_program(<<~RUBY)
      require "socket"
      calls = ->(**options, &block) { traced(tracers: :dns, **options, &block)["dns"].dig("getaddrinfo", "calls") || 0 }
      look_up = ->(times) { times.times { Addrinfo.getaddrinfo("localhost", 80) } }
      own = nil
      all = calls.call(scope: :process) do
        own = [10, 30].map { |times| Thread.new { calls.call { look_up.call(times) } } }.map(&:value)
      end
      emit(own: own, all: all, idle: calls.call { Thread.new { look_up.call(5) }.join })
    RUBY
    skip "calls can't be interposed here" if result["all"].zero? && !Memprof::Tracers.native.include?(:dns)
    # Each look-up is one call, or a fixed number of them.
    times = result["all"] / 40
    expect(times).to be >= 1
    expect(result).to eq("own" => [10 * times, 30 * times], "all" => 40 * times, "idle" => 0)
  end
end
