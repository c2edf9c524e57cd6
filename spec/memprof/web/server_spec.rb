# frozen_string_literal: true

require "memprof/web/server"
require "net/http"
require "socket"
require "timeout"

RSpec.describe Memprof::Web::Server do
  let(:asked) { Queue.new }
  let(:app) do
    ->(env) do
      asked << env
      body = env["PATH_INFO"] == "/unread" ? "" : env["rack.input"].read.b
      status = env["PATH_INFO"] == "/unread" ? 403 : 200
      [status, { "content-type" => "text/plain", "set-cookie" => "a=1" },
        ["#{body.bytesize} ", body[0, 10]]]
    end
  end
  let(:patience) { 60 }
  let(:server) { described_class.new(app, patience: patience).tap(&:start) }
  let(:uri) { URI(server.url) }

  after { server.stop }

  # Sends bytes, and gives all that comes back.
  def exchange(*parts, half: false)
    Timeout.timeout(120) do
      TCPSocket.open(uri.host, uri.port) do |socket|
        parts.each { |part| socket.write(part) }
        socket.close_write if half
        socket.read
      end
    end
  end

  def status(*parts, **options)
    exchange(*parts, **options)[%r{\AHTTP/1.1 (\d+)}, 1].to_i
  end

  it "gives an application the Rack environment" do
    answer = exchange("GET /a/%31%2f?x=%20&y HTTP/1.1\r\nHost: example:7000\r\nX-Two: 1\r\nX-Two: 2\r\n" \
                      "X_Two: 3\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n")
    expect(answer)
      .to match(%r{\AHTTP/1.1 200 OK\r\ndate: .* GMT\r\nconnection: close\r\ncontent-length: 2\r\n})
    expect(answer).to include("set-cookie: a=1\r\n").and end_with("\r\n\r\n0 ")
    expect(asked.pop).to include("REQUEST_METHOD" => "GET", "PATH_INFO" => "/a/%31%2f", "SCRIPT_NAME" => "",
      "QUERY_STRING" => "x=%20&y", "HTTP_HOST" => "example:7000", "SERVER_NAME" => "example",
      "HTTP_X_TWO" => "1, 2", "HTTP_COOKIE" => "a=1; b=2", "REMOTE_ADDR" => "127.0.0.1")
  end

  it "reads bodies of a length, in chunks, and none" do
    post = Net::HTTP::Post.new("/")
    post.body = "x" * 3_000_000
    chunks = Net::HTTP::Post.new("/", "Transfer-Encoding" => "chunked", "Expect" => "100-continue")
    chunks.body_stream = StringIO.new("y" * 3_000_000)
    bodies = [post, chunks].map { |request|
      Net::HTTP.start(uri.host, uri.port) { |http|
        http.request(request).body
      }
    }
    expect(bodies).to eq(["3000000 xxxxxxxxxx", "3000000 yyyyyyyyyy"])
    head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    expect(exchange(head, "3;a=b\r\nabc\r\n", "a\r\n0123456789\r\n", "0\r\nTrailer: x\r\n\r\n"))
      .to end_with("13 abc0123456")
    expect(exchange("HEAD / HTTP/1.1\r\n\r\n")).to end_with("\r\n\r\n")
    expect(exchange("GET / HTTP/1.0\r\n\r\n")).to end_with("\r\n\r\n0 ")
  end

  it "answers before the body, and keeps none of it" do
    head = "POST /unread HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    TCPSocket.open(uri.host, uri.port) do |socket|
      socket.write(head)
      sender = Thread.new do
        sent = 0
        chunk = "100000\r\n#{"x" * 1_048_576}\r\n"
        loop { sent += socket.write(chunk) }
      rescue SystemCallError, IOError
        sent
      end
      expect(Timeout.timeout(120) { socket.gets }).to start_with("HTTP/1.1 403")
      expect(Timeout.timeout(120) { sender.value }).to be < 200 * 1024 * 1024
    end
  end

  it "refuses what has two readings, and what is no request" do
    {
      "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n" => 400, "GET / HTTP/1.1\r\nA : b\r\n\r\n" => 400,
      "GET / HTTP/2\r\n\r\n" => 400, "hello\r\n\r\n" => 400, "GET a HTTP/1.1\r\n\r\n" => 400,
      "GET / HTTP/1.1\r\nA: b\rc: d\r\n\r\n" => 400, "\x16\x03\x01\x00\r\n\r\n" => 400,
      "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab" => 400,
      "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n" => 400,
      "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => 400,
      "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" => 501,
      "GET / HTTP/1.1\r\nA: #{"b" * 40_000}\r\n\r\n" => 431, "G" * 40_000 => 431
    }.each { |request, code| expect(status(request)).to eq(code), request[0, 100].inspect }
    expect(asked).to be_empty
  end

  it "raises in the application if its body ended early or is malformed" do
    errors = Queue.new
    allow(app).to receive(:call) do |env|
      env["rack.input"].read
      [200, {}, []]
    rescue IOError => e
      errors << e
      [400, {}, []]
    end
    chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    ["POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc", "#{chunked}5\r\nabc", "#{chunked}-5\r\nabc",
      "#{chunked}2\r\nabcd\r\n", chunked + "1" * 20, "#{chunked}#{"1;#{"a" * 5000}"}"].each do |request|
      expect(status(request, half: true)).to eq(400), request
    end
    expect(errors.size).to eq(6)
  end

  it "answers with 500 if the application fails, and continues" do
    allow(app).to receive(:call).and_raise("oh no")
    expect {
      expect(status("GET / HTTP/1.1\r\n\r\n")).to eq(500)
    }.to output(/memprof: RuntimeError: oh no/).to_stderr
    allow(app).to receive(:call).and_call_original
    expect(status("GET / HTTP/1.1\r\n\r\n")).to eq(200)
  end

  it "answers while very many connections say nothing" do
    sockets = Array.new(described_class.const_get(:WAITING) + 100) { TCPSocket.new(uri.host, uri.port) }
    expect(Timeout.timeout(60) { Net::HTTP.get(uri) }).to eq("0 ")
    # The oldest made room.
    expect(Timeout.timeout(60) { sockets.first.read }).to eq("")
    half = TCPSocket.new(uri.host, uri.port)
    half.write("GET / HT")
    expect(Timeout.timeout(60) { Net::HTTP.get(uri) }).to eq("0 ")
    half.write("TP/1.1\r\n\r\n")
    expect(Timeout.timeout(60) { half.read }).to end_with("\r\n\r\n0 ")
  ensure
    sockets&.each(&:close)
    half&.close
  end

  context "with little patience" do
    let(:patience) { 0.2 }

    it "closes what says nothing, and ends bodies that do not come" do
      expect(exchange).to eq("")
      expect(exchange("GET / HTTP/1.1\r\n")).to eq("")
      body = exchange("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc")
      expect(body).to eq("")
    end
  end

  it "can't have a port that is taken" do
    expect { described_class.new(app, port: server.port).start }
      .to raise_error(Memprof::Error, /cannot listen on 127.0.0.1:#{server.port}: /)
  end

  it "answers what was asked before it ends" do
    turn = Queue.new
    allow(app).to receive(:call) { [200, {}, [turn.pop]] }
    client = Thread.new { exchange("GET / HTTP/1.1\r\n\r\n") }
    Thread.pass until turn.num_waiting == 1
    ending = Thread.new { server.stop }
    turn << "at last"
    expect(Timeout.timeout(60) { client.value }).to end_with("at last")
    Timeout.timeout(60) { ending.join }
  end
end
