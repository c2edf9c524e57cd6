# frozen_string_literal: true

require "tmpdir"

# The agent of a real process, with intervals of 0.2 seconds; an hour has 6 seconds.
RSpec.describe "Leaks that name themselves" do
  # Does some work until a leak was named, but not longer than so many seconds.
  def run(seconds, work, directory)
    settings = "on,interval=0.2,share=0.5,budget=1,logger=none,directory=#{directory}"
    env = { "MEMPROF_AGENT" => settings, "MEMPROF_RELEASE" => "3fe2a1" }
    run_ruby(<<~RUBY, env: env, ruby_args: ["-rmemprof/agent"])
      require "memprof"
      # Such hours have few bursts of the sampler, too few for a verdict beyond doubt.
      judgement = Memprof::Agent::Trends::Judgement
      { PACE: 0.5, PACE_SIGMAS: 0, FORMER_PACE: 0.5, FORMER_SIGMAS: 0 }.each do |name, value|
        judgement.send(:remove_const, name)
        judgement.const_set(name, value)
      end
      trends = Memprof::Agent::Trends.new(directory: "#{directory}/scaled", hour: 6.0)
      named = []
      Memprof::Agent.subscribe { |interval| named.concat(trends.add(interval)) }
      module Notes
        ALL = []
      end
      cache = {}
      stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + #{seconds}
      until named.any? || Process.clock_gettime(Process::CLOCK_MONOTONIC) > stop
        # In small portions, so that each burst of the sampler sees some.
        100.times do
          #{work}
          500.times { Object.new } # more than the agent itself allocates
          sleep(0.001)
        end
        GC.start
      end
      Memprof::Agent.stop
      named.concat(trends.flush(60))
      puts named
    RUBY
  end

  around { |example| Dir.mktmpdir("memprof-spec-") { |path| (@directory = path) && example.run } }

  it "names the line that leaks, what retains it, and the release" do
    result = run(120, '30.times { Notes::ALL << ("a note" * 20) }', @directory)
    expect(result.stderr).to eq("")
    expect(result.stdout).to match(
      %r{\A-e:\d+: \+\d.*MiB/h for \d[\d.]* h in 1 of 1 worker, String in Notes::ALL, in release 3fe2a1\n\z}
    )
  end

  it "names nothing if a cache is bounded" do
    work = '10.times { cache[rand(3000)] = "a note" * 20; cache.shift if cache.size > 2000 }'
    result = run(38, work, @directory)
    expect(result.stderr + result.stdout).to eq("")
  end
end
