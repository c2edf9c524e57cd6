# frozen_string_literal: true

RSpec.describe "HTTP requests of client gems" do
  # These are for who happens to have them: bin/setup installs none.
  def need_gem(library)
    reason = Servers.obstacle(nil, library, nil)
    skip reason if reason
  end

  # Runs code in a trace, beside a server that answers /missing by 404 and all else by 200, and counts.
  def asked(library, code)
    need_gem(library)
    client_program(<<~RUBY)
      require "socket"
      require #{library.inspect}
      server = TCPServer.new("127.0.0.1", 0)
      $requests = 0
      Thread.new do
        loop do
          Thread.new(server.accept) do |socket|
            while (line = socket.gets)
              nil until socket.gets == "\\r\\n"
              $requests += 1
              status = line.include?("/missing") ? "404 No" : "200 OK"
              socket.write("HTTP/1.1 \#{status}\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nhi")
              socket.close
              break
            end
          end
        end
      end
      PORT = server.addr[1]
      SITE = "http://user:secret@127.0.0.1:\#{PORT}"
      CLOSED = "http://127.0.0.1:\#{TCPServer.open("127.0.0.1", 0) { |closed| closed.addr[1] }}"
      rescued = ->(&ask) { begin; ask.call; rescue StandardError; nil; end }
      emit(**traced(tracers: :http) { #{code} }, requests: $requests, port: PORT)
    RUBY
  end

  def expect_requests(result, responses)
    http = result["http"]
    calls = responses.values.sum
    expect(result["requests"]).to eq(calls)
    expect(http).to include("calls" => calls, "responses" => responses, "time" => be_positive)
    expect(http["hosts"].transform_values { |host| host["ports"] })
      .to eq("127.0.0.1" => { result["port"].to_s => calls })
    expect(http.to_s).not_to include("secret")
  end

  it "are counted with excon" do
    result = asked("excon", <<~RUBY)
      Excon.get(SITE + "/")
      Excon.new(SITE).request(method: :post, path: "/missing", body: "a")
      rescued.call { Excon.get(CLOSED) }
    RUBY
    expect_requests(result, "200" => 1, "404" => 1)
  end

  it "have none of the tracer's objects" do
    need_gem("excon")
    report = client_program(<<~RUBY)
      require "excon"
      ask = -> { Excon.new("http://127.0.0.1:1/", mock: true).get }
      Excon.stub({}, { status: 200 })
      counts = [%i[http objects], %i[objects], %i[http objects], %i[objects]].map do |tracers|
        traced(tracers: tracers, &ask)["objects"]["created"]
      end
      emit(counts: counts.last(2))
    RUBY
    expect(report["counts"].first).to eq(report["counts"].last)
  end

  it "are counted with httpclient" do
    result = asked("httpclient", <<~RUBY)
      client = HTTPClient.new
      client.get(SITE + "/missing")
      client.get_content(SITE + "/") { |part| part }
      rescued.call { client.get(CLOSED) }
    RUBY
    expect_requests(result, "404" => 1, "200" => 1)
  end

  it "are counted with curb" do
    result = asked("curb", <<~RUBY)
      Curl.get(SITE + "/")
      Curl::Easy.new(SITE + "/missing").perform
      Curl::Easy.http_post(SITE + "/", "a=1")
      rescued.call { Curl.get(CLOSED) }
    RUBY
    expect_requests(result, "200" => 2, "404" => 1)
  end

  it "are counted with curb side by side, each once" do
    result = asked("curb", <<~RUBY)
      Curl::Multi.get([SITE + "/", SITE + "/missing", CLOSED]) { |easy| easy.response_code }
      multi = Curl::Multi.new
      easies = Array.new(3) { Curl::Easy.new(SITE + "/") }
      easies.each { |easy| multi.add(easy) }
      multi.perform
      multi.add(easies.first) # its response is that of the transfer before
      multi.cancel!
      easies.last.perform
      multi.add(easies.first.tap { |easy| easy.on_complete { raise "by the program" } })
      rescued.call { multi.perform }
    RUBY
    expect_requests(result, "200" => 6, "404" => 1)
  end

  it "are counted with typhoeus, one by one and side by side" do
    result = asked("typhoeus", <<~RUBY)
      Typhoeus.get(SITE + "/missing")
      hydra = Typhoeus::Hydra.new
      3.times { hydra.queue(Typhoeus::Request.new(SITE + "/")) }
      hydra.run
      Typhoeus.get(CLOSED)
    RUBY
    expect_requests(result, "404" => 1, "200" => 3)
  end

  it "are counted once with faraday, whatever it sits on" do
    result = asked("faraday", <<~RUBY)
      %i[net_http excon httpclient typhoeus].each do |name|
        rescued.call { Faraday.new(SITE) { |faraday| faraday.adapter(name) }.get("/") }
      end
    RUBY
    expect(result["requests"]).to be_positive
    expect_requests(result, "200" => result["requests"])
  end
end
