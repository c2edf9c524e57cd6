# frozen_string_literal: true

require "net/http"

begin
  require "puma"
rescue LoadError
  abort("#{File.basename($PROGRAM_NAME)}: puma is not installed (bin/setup installs it); nothing is measured")
end

# A puma in a separate process; its app, its log, and its output are in a directory.
class Server
  # An app that builds a page of rows, and retains some of them for a while.
  ROWS_APP = <<~'RUBY'
    require "json"
    cache = {}
    run ->(env) do
      rows = Array.new(50) { |id| { "id" => id, "name" => "row #{id}", "tags" => ["a", "b"] } }
      cache.clear if cache.size > 500
      cache["#{env["PATH_INFO"]} #{cache.size}"] = rows.last(5)
      body = JSON.generate(rows)
      [200, { "content-type" => "application/json", "content-length" => body.bytesize.to_s }, [body]]
    end
  RUBY

  attr_reader :pid, :port

  # @param directory [String]
  # @param app [String] text of its config.ru
  # @param library [String] the part of memprof to load
  # @param threads [Integer]
  def initialize(directory, app, library, threads)
    @directory = directory
    @log = File.join(directory, "log")
    config = File.join(directory, "config.ru")
    File.write(config, app)
    path = File.expand_path("../../lib", __dir__)
    @pid = Process.spawn({ "RUBYOPT" => nil, "MEMPROF_DIR" => directory },
      RbConfig.ruby, "-I#{path}", "-r#{library}", "-e", "require 'puma/cli'; Puma::CLI.new(ARGV).run",
      "--", "--threads", "#{threads}:#{threads}", "--bind", "tcp://127.0.0.1:0",
      "--environment", "production", config, in: File::NULL, [:out, :err] => @log)
    sleep(0.02) until (@port = File.read(@log)[%r{Listening on http://127\.0\.0\.1:(\d+)}, 1]) || !alive?
    abort("puma does not start:\n#{File.read(@log)}") unless @port
  end

  def alive?
    Process.wait(@pid, Process::WNOHANG).nil?
  rescue Errno::ECHILD
    false
  end

  # Yields a connection, which is kept open between requests.
  def connect(&block)
    Net::HTTP.start("127.0.0.1", @port, open_timeout: 10, read_timeout: 10, &block)
  end

  # Its current resources, which reveal leaks and zombies.
  def resources
    status = File.read("/proc/#{@pid}/status")
    {
      "RSS, MiB" => Bench.mebibytes(status[/^VmRSS:\s+(\d+)/, 1].to_i * 1024),
      "threads" => status[/^Threads:\s+(\d+)/, 1].to_i,
      "open files" => Dir.children("/proc/#{@pid}/fd").size,
      "children" => Dir.glob("/proc/#{@pid}/task/*/children").sum { |file| File.read(file).split.size }
    }
  end

  def warnings
    File.readlines(@log).grep(/memprof:|error|WARN/i)
  end

  def stop
    Process.kill(:TERM, @pid)
    Process.wait(@pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil
  end
end
