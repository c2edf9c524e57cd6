# frozen_string_literal: true

require "json"
require "tmpdir"

RSpec.describe "Traces under a Fiber scheduler" do
  # Runs two requests at a time, which ask 3 and 7 times, and gives their lines in this order, and stderr.
  def requests(options = "")
    Dir.mktmpdir("memprof-spec-") do |directory|
      path = File.join(directory, "requests.json")
      # Ruby 4.0 warns of the IO::Buffer that it makes for a read under a scheduler.
      result = run_ruby(<<~RUBY, ruby_args: ["-W:no-experimental"])
        require #{File.expand_path("../../support/fiber_scheduler", __dir__).inspect}
        require "memprof/tracer"
        class Trilogy; def query(sql) = sleep(0.01) && Array.new(10); end
        app = lambda do |env|
          client = Trilogy.new
          env["queries"].times { client.query("select 1") }
          [200, {}, []]
        end
        tracer = Memprof::Tracer.new(app, path: #{path.inspect}#{options})
        2.times do
          Thread.new do
            Fiber.set_scheduler(FiberScheduler.new)
            [3, 7].each do |queries|
              Fiber.schedule { tracer.call("queries" => queries, "PATH_INFO" => "/\#{queries}") }
            end
          end.join
        end
        tracer.call("queries" => 5, "PATH_INFO" => "/5")
      RUBY
      expect(result).to be_success
      lines = File.readlines(path).map { |line| JSON.parse(line) }
      [lines.sort_by { |line| line["request"]["PATH_INFO"].delete("/").to_i }, result.stderr]
    end
  end

  def queries(lines)
    lines.map { |line| line["tracers"]["mysql"]["queries"] }
  end

  it "count calls of clients in Ruby by fiber, and say what they can't count" do
    lines, stderr = requests(", tracers: %i[mysql objects]")
    expect(queries(lines)).to eq([3, 3, 5, 7, 7])
    error = "not counted: under a Fiber scheduler requests share their thread"
    expect(lines.map { |line| line["tracers"]["objects"]["error"] }).to eq([error, error, nil, error, error])
    expect(lines[2]["tracers"]["objects"]["types"]["array"]).to be >= 5
    expect(stderr).to eq("memprof: traces go without objects, mysql, which are #{error}; " \
                         "scope: :process counts them for all together\n")
  end

  it "count for all together, if asked to" do
    lines, stderr = requests(", tracers: %i[mysql objects], scope: :process")
    asked = [3..10, 3..10, 5..5, 7..10, 7..10].map { |range| be_between(*range.minmax) }
    expect(queries(lines)).to match(asked)
    expect(lines.map { |line| line["tracers"]["objects"] }).to all(include("created" => be_positive))
    expect(stderr).to eq("")
  end

  it "say nothing of what counts no thread" do
    lines, stderr = requests(", tracers: %i[http]")
    expect(lines.map { |line| line["tracers"] }).to eq([{ "http" => {} }] * 5)
    expect(stderr).to eq("")
  end
end
