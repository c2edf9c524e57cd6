# frozen_string_literal: true

require "json"
require "net/http"
require "tmpdir"

RSpec.describe "memprof/signal in a puma cluster" do
  app = <<~'RUBY'
    $cache = []
    run lambda { |env| $cache << "request %d" % $cache.size; [200, { "content-type" => "text/plain" }, [$$.to_s]] }
  RUBY

  before(:all) do
    require "puma"
  rescue LoadError
    skip "puma is not installed"
  end

  # Starts puma with two workers, gives its id and its port to the block, and stops it.
  def cluster(directory, app, *arguments)
    path = File.join(directory, "config.ru")
    File.write(path, app)
    command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", "-rmemprof/signal", "-e",
      "require 'puma/cli'; Puma::CLI.new(ARGV).run", "--", "--workers", "2", "--threads", "2:2", *arguments,
      "--bind", "tcp://127.0.0.1:0", "--environment", "production", path]
    IO.popen({ "RUBYOPT" => nil, "MEMPROF_DIR" => directory }, command, err: [:child, :out]) do |server|
      log = +""
      until log.scan(/Worker \d+ .*booted/).size == 2
        log << (server.gets || raise("puma does not start:\n#{log}"))
      end
      yield(server.pid, log[/127\.0\.0\.1:(\d+)/, 1].to_i, log)
    ensure
      log << stop_puma(server)
    end
  end

  # Of the master and its workers.
  def sockets(directory)
    eventually("the sockets") do
      paths = Dir.glob(File.join(directory, "*.sock"))
      paths.size == 3 && paths.all? { |path| listened_to?(path) }
    end
  end

  { "under load" => [],
    "under load, with an app that was loaded before" => ["--preload"] }.each do |how, arguments|
    it "has each worker answer, #{how}" do
      directory = Dir.mktmpdir
      log = nil
      cluster(directory, app, *arguments) do |master, port, text|
        log = text
        load = 2.times.map { Thread.new { 150.times.map { Net::HTTP.get(URI("http://127.0.0.1:#{port}/")) } } }
        sockets(directory)
        stdout, stderr, status = run_memprof("dump", "--pid", master, "--children", chdir: directory)
        expect(status.exitstatus).to eq(0), stderr
        dumps = stdout.lines.map { |name| File.join(directory, name.chomp) }
        expect(dumps.size).to eq(2)
        workers = dumps.map { |path| expect_whole(path).first["pid"] }
        expect(load.flat_map(&:value).uniq.map(&:to_i) - workers).to be_empty
        expect(workers).not_to include(master)
      end
      expect(log).not_to match(/WARNING|memprof:|SEGV|terminated unexpectedly/i)
    ensure
      FileUtils.rm_rf(directory)
    end
  end

  it "loses nothing over many dumps" do
    directory = Dir.mktmpdir
    log = nil
    cluster(directory, app) do |_, port, text|
      log = text
      asked = 0
      load = Thread.new { 300.times.map { Net::HTTP.get(URI("http://127.0.0.1:#{port}/")) } }
      sockets(directory)
      workers = Dir.children(directory).grep(/sock/).map { |name| name[/\d+/].to_i }
      6.times do
        workers.each { |pid| Process.kill(:URG, pid) }
        asked += workers.size
        eventually("all dumps") { Dir.glob("#{directory}/*.json").size == asked }
      end
      Dir.glob("#{directory}/*.json").each { |path|
        expect(File.read(path).lines.last).to include('"footer"')
      }
      expect(load.value.size).to eq(300)
    end
    expect(log).not_to match(/memprof:|SEGV|terminated unexpectedly/i)
  ensure
    FileUtils.rm_rf(directory)
  end
end
