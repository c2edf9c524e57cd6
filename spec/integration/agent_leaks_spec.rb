# frozen_string_literal: true

require "tmpdir"

# The agent of a real process, with intervals of 0.2 seconds, for which an hour has 3.6 seconds.
RSpec.describe "Leaks that name themselves" do
  def run(work, directory, seconds)
    run_ruby(<<~RUBY, env: { "MEMPROF_AGENT" => "on,interval=0.2,share=1,budget=1,logger=none,directory=#{directory}", "MEMPROF_RELEASE" => "3fe2a1" }, ruby_args: ["-rmemprof/agent"], args: ["--", seconds.to_s])
      require "memprof"
      trends = Memprof::Agent::Trends.new(directory: "#{directory}/scaled", hour: 3.6)
      named = []
      failures = []
      Memprof::Agent.subscribe do |interval|
        named.concat(trends.add(interval))
      rescue => error
        failures << error.full_message
      end
      module Notes
        ALL = []
      end
      cache = {}
      stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[0].to_f
      until named.any? || Process.clock_gettime(Process::CLOCK_MONOTONIC) > stop
        #{work}
        sleep(0.01)
      end
      Memprof::Agent.stop
      named.concat(trends.flush(60))
      puts named, failures
    RUBY
  end

  around { |example| Dir.mktmpdir("memprof-spec-") { |path| (@directory = path) && example.run } }

  it "names the line that leaks, what retains it, and the release" do
    result = run("200.times { Notes::ALL << (\"a note\" * 20) }", @directory, 60)
    expect(result.stderr).to eq("")
    expect(result.stdout).to match(
      %r{\A-e:\d+: \+\d.*MiB/h for \d[\d.]* h in 1 of 1 worker, String in Notes::ALL, in release 3fe2a1\n\z}
    )
  end

  it "names nothing if a cache is bounded" do
    result = run("200.times { |index| cache[rand(3000)] = \"a note\" * 20; cache.shift if cache.size > 2000 }", @directory, 22)
    expect(result.stderr + result.stdout).to eq("")
  end
end
