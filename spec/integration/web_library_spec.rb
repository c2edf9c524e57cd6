# frozen_string_literal: true

require "json"
require "memprof/library"
require "net/http"
require "open3"
require "socket"
require "timeout"
require "tmpdir"
require "zlib"

# `memprof web --library`, and `memprof --pid --url`, as users run them.
RSpec.describe "memprof web --library" do
  include HeapDumps

  key = "a key that is long enough"

  let(:directory) { Dir.mktmpdir("memprof-spec-") }
  let(:place) { File.join(directory, "library") }
  let(:library) { Memprof::Library.new(place) }
  let(:client) do
    { "MEMPROF_KEY" => key, "MEMPROF_URL" => nil, "MEMPROF_LIBRARY" => nil, "HOME" => directory }
  end

  after { FileUtils.rm_rf(directory) }

  # Runs the server; gives its address, what it says besides, and its process id.
  def serve(*arguments, env: {})
    program = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof"), "web",
      "--no-open", "--token", "long enough"]
    errors = File.join(directory, "errors")
    env = { "RUBYOPT" => nil, "MEMPROF_KEY" => nil, "MEMPROF_LIBRARY" => nil }.merge(env)
    IO.popen([env, *program, *arguments, { err: errors }]) do |server|
      address = Timeout.timeout(120) { server.gets }
      raise File.read(errors) unless address

      eventually("what it says") { File.read(errors).include?("KEY") } if arguments.join.include?("--library")
      yield(URI(address.chomp).tap { |uri| uri.query = nil }, errors, server.pid)
    ensure
      Process.kill(:KILL, server.pid)
    end
  end

  def page(uri, path)
    Net::HTTP.start(uri.host, uri.port) { |http| http.get(path, "Authorization" => "Bearer long enough") }
  end

  def classic(*arguments, **options)
    run_memprof(*arguments, "--name", "my_leaky_app", env: client, **options)
  end

  # A certificate that signs itself, and its key.
  def certify(address)
    secret = OpenSSL::PKey::RSA.new(2048)
    certificate = OpenSSL::X509::Certificate.new
    certificate.version = 2
    certificate.serial = 1
    certificate.subject = certificate.issuer = OpenSSL::X509::Name.parse("/CN=#{address}")
    certificate.not_before = Time.now - 60
    certificate.not_after = Time.now + 3600
    certificate.public_key = secret.public_key
    names = OpenSSL::X509::ExtensionFactory.new.create_extension("subjectAltName", "IP:#{address}")
    certificate.add_extension(names)
    [certificate.sign(secret, OpenSSL::Digest.new("SHA256")), secret]
  end

  # A proxy with TLS before a server.
  def secured(certificate, secret, port)
    context = OpenSSL::SSL::SSLContext.new.tap { |made|
      made.cert = certificate
      made.key = secret
    }
    OpenSSL::SSL::SSLServer.new(TCPServer.new("127.0.0.1", 0), context).tap do |proxy|
      Thread.new { proxied(proxy, port) until proxy.closed? }
    end
  end

  def proxied(proxy, port)
    forward(proxy.accept, TCPSocket.new("127.0.0.1", port))
  rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
    nil # the proxy is closed, or its client does not trust it
  end

  def forward(outside, inside)
    back = Thread.new { IO.copy_stream(inside, outside) && outside.close }
    IO.copy_stream(outside, inside)
  rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
    nil # one of them has gone
  ensure
    back&.join
    inside.close
  end

  def parts
    Dir.children(place).grep(/part/)
  end

  # How much memory a process has had at most.
  def peak(pid)
    File.read("/proc/#{pid}/status")[/VmHWM:\s*(\d+)/, 1].to_i * 1024
  end

  it "takes the dump of a process from the seed's command" do
    serve("--library", place, "--key", key) do |uri, errors, _|
      live_program do |program|
        stdout, stderr, status = classic("--pid", program.pid, "--url", uri.to_s)
        expect([stderr, status.exitstatus]).to eq(["", 0]), stdout
        entry = library.first
        address = "#{uri}heaps/#{entry.number}/"
        expect(stdout).to include("Uploading ", "View it: #{address}\n", "Deleted dump file.\n")
        expect(program.dumps).to be_empty
        expect(entry.to_h).to include(app: "my_leaky_app", pid: program.pid, objects: be > 1000)
        shown = eventually("the heap") do
          page(uri, URI(address).path).then { |answer| answer if answer.code == "200" }
        end
        expect(shown.body.force_encoding("UTF-8")).to include("<h1>my_leaky_app</h1>")
        expect(page(uri, "/library").body).to include("my_leaky_app")
      end
      expect(File.read(errors) + `ps -o args= -p #{Process.pid}`).not_to include(key)
    end
  end

  it "refuses in one line, and leaves the dump where it is" do
    limits = ["--max-upload", "300KB", "--max-size", "2MB"]
    serve("--library", place, "--key", key, *limits) do |uri, _, _|
      dump = File.join(directory, "heap.memprof")
      FileUtils.cp(cache_dump, dump)
      large = File.join(directory, "large.memprof")
      File.binwrite(large, Random.new(1).bytes(5_000_000))
      notes = File.join(directory, "notes.json")
      File.write(notes, "no dump")
      {
        [dump, "-k", "another key"] => /wrong key for this library \(--key\)/,
        [large] => /a dump may have 293.0 KiB \(--max-upload\)/,
        [notes] => /not a heap dump, so it was not stored/,
        [dump, "-u", "http://127.0.0.1:#{uri.port}/elsewhere"] => /permission denied \(--key\)/,
        [dump, "-u", "http://127.0.0.1:1"] => /Connection refused/,
        [dump, "-u", "http://nowhere.invalid"] => /Can't upload to http:\/\/nowhere.invalid:80: /,
        [dump, "-u", "https://127.0.0.1:#{uri.port}"] => /SSL/
      }.each do |(file, *arguments), message|
        stdout, _, status = classic("--file", file, "-d", "--url", uri.to_s, *arguments)
        expect([stdout.lines.last, status.exitstatus]).to match([message, 1])
        expect(stdout.lines.last).to end_with("To try again, use --file #{file}\n")
        expect(File.exist?(file)).to be(true)
      end
      expect(library.to_a).to be_empty
      expect(parts).to be_empty
    end
  end

  it "takes nothing of an upload whose socket is closed in the middle" do
    serve("--library", place, "--key", key) do |uri, _, _|
      head = "POST /upload?name=a HTTP/1.1\r\nHost: #{uri.host}:#{uri.port}\r\n" \
             "Authorization: Bearer #{key}\r\nContent-Length: 100000000\r\n\r\n"
      TCPSocket.open(uri.host, uri.port) do |socket|
        socket.write(head, File.binread(cache_dump))
      end
      eventually("an end") { parts.empty? && page(uri, "/library.json").code == "200" }
      expect(JSON.parse(page(uri, "/library.json").body)["dumps"]).to be_empty
      expect(classic("--file", cache_dump, "--url", uri.to_s).status.exitstatus).to eq(0)
      expect(library.count).to eq(1)
    end
  end

  it "refuses a wrong key before any part of an endless upload is stored" do
    serve("--library", place, "--key", key, env: { "TMPDIR" => directory }) do |uri, _, pid|
      page(uri, "/library")
      before = peak(pid)
      TCPSocket.open(uri.host, uri.port) do |socket|
        socket.write("POST /upload?name=a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer #{key}x\r\n" \
                     "Transfer-Encoding: chunked\r\n\r\n")
        chunk = "100000\r\n#{"x" * 1_048_576}\r\n"
        sender = Thread.new do
          2000.times { socket.write(chunk) }
        rescue SystemCallError, IOError
          :cut
        end
        expect(Timeout.timeout(120) { socket.gets }).to start_with("HTTP/1.1 403")
        expect(Timeout.timeout(120) { sender.value }).to eq(:cut)
      end
      expect(parts).to be_empty
      expect(Dir.glob("#{directory}/**/*", File::FNM_DOTMATCH).sum { |file|
               File.size(file)
             }).to be < 1024 * 1024
      expect(peak(pid) - before).to be < 60 * 1024 * 1024
    end
  end

  it "sends a dump compressed, and one that is compressed as it is" do
    serve("--library", place, "--key", key) do |uri, _, _|
      json = File.join(directory, "heap.json")
      run_memprof("convert", "--format", "objspace", cache_dump, json)
        .then { |result| raise result.stderr unless result.success? }
      [json, cache_dump].each { |dump| classic("--file", dump, "--url", uri.to_s, "--name", "a") }
      binary, text = library.to_a
      expect(FileUtils.identical?(binary.path, cache_dump)).to be(true)
      expect(Zlib::GzipReader.open(text.path, &:read).b).to eq(File.binread(json))
      expect(text.path).to end_with(".json.gz")
      expect(text.size).to be < File.size(json) / 4
    end
  end

  it "never loads a whole dump into memory" do
    serve("--library", place, "--key", key) do |uri, _, pid|
      page(uri, "/library")
      before = peak(pid)
      large = File.join(directory, "large.json")
      File.open(large, "wb") { |file| 200.times { file.write("no dump\n" * 131_072) } }
      stdout, = classic("--file", large, "--url", uri.to_s)
      expect(stdout.lines.last).to match(/not a heap dump/)
      expect(peak(pid) - before).to be < 60 * 1024 * 1024
    end
  end

  it "needs little memory to refuse a line of a gigabyte" do
    serve("--library", place, "--key", key) do |uri, _, pid|
      page(uri, "/library")
      before = peak(pid)
      large = File.join(directory, "large.json.gz")
      Zlib::GzipWriter.open(large, Zlib::BEST_SPEED) do |gzip|
        gzip.write(%({"address":"0x1000", "type":"STRING", "value":"))
        1024.times { gzip.write("a" * 1024 * 1024) }
        gzip.write(%(", "memsize":40}\n))
      end
      stdout, = classic("--file", large, "--url", uri.to_s)
      expect(stdout.lines.last).to match(/the record in line 1 is larger than the limit of \d+ MiB/)
      expect(peak(pid) - before).to be < 200 * 1024 * 1024
    end
  end

  it "takes many uploads of one name at once" do
    serve("--library", place, "--key", key) do |uri, _, _|
      clients = Array.new(4) { Thread.new { classic("--file", cache_dump, "--url", uri.to_s) } }
      expect(clients.map { |thread| thread.value.status.exitstatus }).to eq([0] * 4)
      expect(library.map(&:name)).to eq(["my_leaky_app"] * 4)
    end
  end

  it "makes up a key once, and shows it once" do
    made = nil
    serve("--library", env: { "MEMPROF_LIBRARY" => place }) do |uri, errors, _|
      made = File.read(errors)[/^The KEY, shown only this time: (\S+)$/, 1]
      expect(made).to eq(File.read(File.join(place, ".key")).chomp)
      stdout, = classic("--file", cache_dump, "--url", uri.to_s, "--key", made)
      expect(stdout).to include("View it: ")
    end
    serve("--library", place) do |uri, errors, _|
      expect(File.read(errors)).to include("The KEY is in #{place}/.key")
      expect(File.read(errors)).not_to include(made)
      expect(page(uri, "/library.json").body).not_to include(made)
      expect(JSON.parse(page(uri, "/library.json").body)["dumps"].size).to eq(1)
    end
  end

  it "opens dumps of the library with its options" do
    number = library.take(app: "a") { |part| IO.copy_stream(cache_dump, part) }.number
    index = "#{library.first.path}.memprof-index"
    File.unlink(index)
    serve("--library", place, "--key", key, "--no-index") do |uri, _, _|
      eventually("the heap") { page(uri, "/heaps/#{number}/").code == "200" }
      expect(File.exist?(index)).to be(false)
    end
  end

  it "shows what the command stored without a server" do
    stdout, = run_memprof("--file", cache_dump, "-n", "shop", env: client.merge("MEMPROF_KEY" => nil))
    expect(stdout).to include("Added to the library: #{directory}/.local/share/memprof/")
    serve("--library", env: { "HOME" => directory, "XDG_DATA_HOME" => nil }) do |uri, _, _|
      expect(JSON.parse(page(uri, "/library.json").body)["dumps"].first["name"]).to eq("shop")
    end
  end

  it "takes uploads by https, of a server that it can trust" do
    require "memprof/web"
    require "memprof/web/server"
    require "openssl"
    certificate, secret = certify("127.0.0.1")
    uploads = Memprof::Web::Uploads.new(library, key, limit: 1 << 30)
    server = Memprof::Web::Server.new(Memprof::Web.new(uploads: uploads)).tap(&:start)
    proxy = secured(certificate, secret, server.port)
    url = "https://127.0.0.1:#{proxy.addr[1]}"
    trusted = File.join(directory, "certificate.pem")
    File.write(trusted, certificate.to_pem)
    env = client.merge("SSL_CERT_FILE" => trusted)
    stdout, = run_memprof("-f", cache_dump, "-n", "a", "-u", url, env: env)
    expect(stdout).to include("View it: #{url}/heaps/#{library.first.number}/\n")
    expect(library.count).to eq(1)
    stdout, = run_memprof("-f", cache_dump, "-n", "a", "-u", url, env: client)
    expect(stdout.lines.last).to match(/certificate verify failed.*To try again/)
    expect(library.count).to eq(1)
  ensure
    proxy&.close
    server&.stop
  end

  it "accepts another host name if allowed" do
    serve("--library", place, "--host", "dumps.example", "--key", key) do |uri, _, _|
      codes = ["dumps.example", "evil.example"].map do |host|
        Net::HTTP.start(uri.host, uri.port) do |http|
          http.get("/library", "Host" => host, "Authorization" => "Bearer long enough").code
        end
      end
      expect(codes).to eq(["200", "403"])
    end
  end

  it "says in one line what it can't do" do
    file = File.join(directory, "file")
    FileUtils.cp(cache_dump, file)
    open_key = File.join(directory, "open")
    Dir.mkdir(open_key)
    File.write(File.join(open_key, ".key"), key, perm: 0o644)
    {
      ["--library", file] => /is not a directory; use --library=DIR FILE/,
      ["--library", "/proc/nowhere"] => %r{cannot store dumps in /proc/nowhere: },
      ["--library", place, "--key", "short"] => /invalid key; expected at least 16 characters/,
      ["--library", open_key] => /is accessible to others; run chmod 600 on it/,
      ["--library", place, "--max-size",
        "much"] => /invalid --max-size "much"; expected a size such as 500MB or 2GiB/,
      ["--library", place, "--max-upload", "0"] => /expected a size/,
      ["--key", key, file] => /--key needs --library/,
      ["--max-size", "1GB"] => /--max-size needs --library/
    }.each do |arguments, message|
      stdout, stderr, status = run_memprof("web", "--no-open", *arguments, env: { "MEMPROF_KEY" => nil })
      expect([stdout, status.exitstatus, stderr.lines.size]).to eq(["", 2, 1]), stderr
      expect(stderr).to match(message)
    end
  end
end
