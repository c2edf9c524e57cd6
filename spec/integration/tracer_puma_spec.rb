# frozen_string_literal: true

require "fileutils"
require "json"
require "net/http"
require "socket"
require "timeout"
require "tmpdir"

RSpec.describe "Memprof::Tracer in puma" do
  before(:all) do
    require "puma"
  rescue LoadError
    skip "puma is not installed"
  end

  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:app) do
    File.join(directory, "config.ru").tap do |path|
      File.write(path, <<~RUBY)
        require "memprof/tracer"
        use Memprof::Tracer
        run(->(env) do
          number = Integer(env["PATH_INFO"][/\\d+/])
          number.times { Object.new && Thread.pass }
          IO.pipe.then { |reader, writer| number.times { writer.syswrite("a") && reader.sysread(1) } }
          [200, { "content-type" => "text/plain" }, [number.to_s]]
        end)
      RUBY
    end
  end

  after { FileUtils.rm_rf(directory) }

  # One that ends its requests in all the ways that there are.
  let(:moody) do
    File.join(directory, "moody.ru").tap do |path|
      File.write(path, <<~RUBY)
        require "memprof/tracer"
        use Memprof::Tracer
        run(->(env) do
          case env["PATH_INFO"]
          when "/raise" then raise "oh no"
          when "/large" then [200, {}, ["x" * 20_000_000]]
          when "/stream" then [200, {}, %w[hel lo].each]
          when "/unclosed" then [200, {}, ["hello"].tap { |body| def body.close = raise("stuck") }]
          when "/hijack"
            io = env["rack.hijack"].call
            io.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello")
            io.close
            [200, {}, []]
          else [200, { "content-type" => "text/plain" }, ["hello"]]
          end
        end)
      RUBY
    end
  end

  def serve(*options, &block)
    with_puma(app, *options, env: { "MEMPROF_DIR" => directory }, &block)
  end

  def files
    Dir[File.join(directory, "memprof_tracer-*.json")]
  end

  def requests
    files.flat_map { |file| File.readlines(file).map { |line| JSON.parse(line) } }
  end

  def ask(port, clients, rounds)
    threads = Array.new(clients) do |index|
      number = (index + 1) * 10
      Thread.new do
        Array.new(rounds) do
          Net::HTTP.start("127.0.0.1", port, open_timeout: 300, read_timeout: 120) do |http|
            http.get("/#{number}?a=b").body.to_i
          end
        end
      end
    end
    threads.flat_map(&:value)
  end

  # What each request asked for, and what was counted for it.
  def counted(request)
    number = request["request"]["PATH_INFO"].delete_prefix("/").to_i
    tracers = request["tracers"]
    objects = tracers["objects"]["classes"]["Object"]["count"]
    return [number, objects] unless (fd = tracers["fd"])

    [number, objects, fd["read"]["calls"], written(fd["write"], number)]
  end

  # Bytes that the app wrote, one by one. Since Ruby 3.3 a thread may also wake the VM's timer, eight at once.
  def written(writes, number)
    writes["requested"] - (8 * (writes["calls"] - number))
  end

  def expect_all_counted(number)
    expect(requests.size).to eq(number)
    requests.each { |request| expect(counted(request).uniq.size).to eq(1), request["tracers"].inspect }
  end

  it "counts for each of the requests that run at once what it does" do
    serve("--threads", "5:5") do |port|
      expect(ask(port, 5, 8).size).to eq(40)
      # A request's line is written behind its answer.
      eventually("a line for each") { files.sum { |file| File.foreach(file).count } == 40 }
    end
    expect(files.size).to eq(1)
    expect_all_counted(40)
    expect(requests.map { |request| request["request"]["QUERY_STRING"] }.uniq).to eq(["a=b"])
  end

  it "gives each worker a file" do
    serve("--workers", "2", "--threads", "2:2", "--preload") do |port|
      100.times do |round|
        ask(port, 4, 3)
        break if files.size == 2

        raise "the second worker answers nothing" if round == 99
      end
    end
    expect_all_counted(requests.size)
  end

  # What a client gets before it has enough.
  def head(port, path, verb: "GET", enough: 15)
    TCPSocket.open("127.0.0.1", port) do |socket|
      socket.write("#{verb} #{path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
      socket.read(enough)
    end
  end

  def paths
    requests.map { |request| request["request"]["PATH_INFO"] }.sort
  end

  it "has a line however a request ends" do
    with_puma(moody, "--threads", "1:1", env: { "MEMPROF_DIR" => directory }) do |port|
      expect(head(port, "/raise")).to eq("HTTP/1.1 500 In")
      %w[/stream /unclosed /hijack /large].each do |path|
        expect(head(port, path)).to start_with("HTTP/1.1 200")
      end
      expect(head(port, "/head", verb: "HEAD")).to eq("HTTP/1.1 200 OK")
    end
    expect(paths).to eq(%w[/head /hijack /large /raise /stream /unclosed])
    replies = requests.to_h { |request| [request["request"]["PATH_INFO"], request["response"]] }
    expect(replies.transform_values { |response| response["code"] })
      .to include("/raise" => 500, "/large" => 200, "/head" => 200)
  end

  it "serves requests though the file is a pipe that is never read" do
    fifo = File.join(directory, "fifo").tap { |path| File.mkfifo(path) }
    app = File.join(directory, "slow.ru")
    File.write(app, <<~RUBY)
      require "memprof/tracer"
      use Memprof::Tracer, path: #{fifo.dump}
      run ->(_env) { [200, { "content-type" => "text/plain" }, ["hello"]] }
    RUBY
    with_puma(app, "--threads", "1:1") do |port|
      2.times { expect(Timeout.timeout(120) { head(port, "/home") }).to eq("HTTP/1.1 200 OK") }
    end
  end

  [[], %w[--workers 1]].each do |options|
    it "has all lines if it is stopped when the last reply is there (#{["puma", *options].join(" ")})" do
      serve("--threads", "1:1", *options) { |port| expect(ask(port, 1, 5).size).to eq(5) }
      expect_all_counted(5)
    end
  end
end
