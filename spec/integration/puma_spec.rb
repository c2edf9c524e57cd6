# frozen_string_literal: true

require "net/http"
require "tempfile"

RSpec.describe "Memprof::Middleware in puma" do
  people = 5
  app = File.expand_path("../fixtures/apps/puma/config.ru", __dir__)
  heading = "\n#{"-" * 80}\n#{"-" * 80}\n"

  before(:all) do
    require "puma"
  rescue LoadError
    skip "puma is not installed"
  end

  # Starts puma on a port that it chooses, gives the port to the block, and stops it.
  def serve(app, threads:, env:)
    command = [RbConfig.ruby, "-I#{ChildRuby::LIB}",
      "-e", "require 'puma/cli'; Puma::CLI.new(ARGV).run", "--",
      "--threads", "#{threads}:#{threads}", "--bind", "tcp://127.0.0.1:0", "--environment", "production", app]
    IO.popen({ "RUBYOPT" => nil, **env }, command, err: [:child, :out]) do |server|
      log = +""
      log << (server.gets || raise("puma does not start:\n#{log}")) until log =~ %r{Listening on http://127.0.0.1:(\d+)}
      port = Integer(Regexp.last_match(1))
      yield port
    ensure
      log << stop_puma(server)
    end
  end

  def get(port, path)
    Net::HTTP.start("127.0.0.1", port, open_timeout: 300, read_timeout: 120) { |http| http.get(path) }
  end

  # Gives the reports, which are whole when the server has ended, as Hashes of class to objects from the
  # app's file.
  def reports(file, count, heading, app)
    parts = File.read(file).split(heading).drop(1)
    expect(parts.size).to eq(count)
    parts.map do |part|
      part.lines.each { |line| expect(line).to match(/\A *\d+ .+:\d+:.+\n\z/) }
      part.scan(/^ *(\d+) #{Regexp.escape(app)}:(\d+):(.*)$/)
    end
  end

  it "reports for each of the requests that run at once its own objects" do
    rounds = 6
    Tempfile.create("reports") do |file|
      serve(app, threads: people, env: { "REPORTS" => file.path, "PEOPLE" => people.to_s }) do |port|
        clients = (1..people).map do |number|
          Thread.new { rounds.times.map { get(port, "/rounds/#{number * 10}").body } }
        end
        expect(clients.map(&:value)).to eq((1..people).map { |number| ["made #{number * 10}"] * rounds })
      end

      found = reports(file.path, rounds * people, heading, app)
      lines = File.readlines(app)
      numbers = found.map do |rows|
        %w[arrays objects strings].map do |what|
          line = lines.index { |text| text.end_with?("# #{what}\n") } + 1
          rows.find { |_, at, name| at.to_i == line && name == what.capitalize.chomp("s") }&.first.to_i
        end
      end
      expect(numbers.tally).to eq((1..people).to_h { |number| [[number * 10] * 3, rounds] })
    end
  end

  it "survives what apps do: raising, hijacking, sending files" do
    Tempfile.create("reports") do |file|
      serve(app, threads: people, env: { "REPORTS" => file.path, "PEOPLE" => "1" }) do |port|
        expect(get(port, "/raise").code).to eq("500")
        expect(get(port, "/hijack").body).to eq("hijacked")
        expect(get(port, "/file").body).to eq(File.read(app))
        expect(get(port, "/nowhere").code).to eq("404")
        expect(get(port, "/rounds/1").body).to eq("made 1")
      end
      expect(reports(file.path, 5, heading, app).size).to eq(5)
    end
  end
end
